-- A message's outline, read: its headers, and how long its payload is.
--
-- The broker serialized it, so it is whole: headers first (field 2, each a message of a name and a
-- value), then the tag and the length of the payload (field 3).

local native, parts = ...
local byte, sub, find, unpack = native.string.byte, native.string.sub, native.string.find, native.string.unpack
local watch = parts.watch

local HEADER, PAYLOAD, NAME, VALUE = 18, 26, 10, 18
-- Longer texts are looked into for NULs, which make them slow to compare.
local SHORT = 64

local function varint(slice, at)
  local value, shift, group = 0, 0, nil
  repeat
    group = byte(slice, at)
    value, shift, at = value | (group & 127) << shift, shift + 7, at + 1
  until group < 128
  return value, at
end

-- A header of any length, with its fields in any order; where the next one begins.
local function read_header(slice, at, shown)
  local size, name, value = nil, "", ""
  size, at = varint(slice, at)
  local over = at + size
  while at < over do
    local tag, length = byte(slice, at), nil
    length, at = varint(slice, at + 1)
    local text = sub(slice, at, at + length - 1)
    if length > SHORT and find(text, "\0", 1, true) then watch.closely() end
    if tag == NAME then name = text else value = text end
    at = at + length
  end
  shown[name] = value
  return over
end

-- The last message's header, where it had but one: messages of a queue are mostly alike, and a table
-- less for each of them is worth it. Scripts never see the table itself.
local single, single_name = {}, nil

local function several(shown)
  if shown == single then return { [single_name] = single[single_name] } end
  return shown or {}
end

return function(slice, at, over)
  local shown, count, payload_size, only = nil, 0, 0, nil
  while at < over do
    local tag, size, more = byte(slice, at, at + 2)
    if tag == HEADER then
      local name_tag, name, value_tag, value, after
      if size < SHORT then
        -- Nearly always: everything is short enough for lengths of one byte.
        name_tag, name, value_tag, value, after = unpack("Bs1Bs1", slice, at + 2)
      end
      count = count + 1
      if name_tag == NAME and value_tag == VALUE and after == at + 2 + size then
        if count > 1 then
          shown = several(shown)
        elseif name == single_name then
          shown = single
        else
          shown, only = {}, name
        end
        shown[name], at = value, after
      else
        shown = several(shown)
        at = read_header(slice, at + 1, shown)
      end
    else
      if tag == PAYLOAD then
        if size < 128 then
          payload_size = size
        elseif more < 128 then
          payload_size = size - 128 + (more << 7)
        else
          payload_size = varint(slice, at + 1)
        end
      end
      break
    end
  end
  if only and count == 1 then single, single_name = shown, only end
  return shown or {}, payload_size
end
