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

return function(slice, at, over)
  local shown = {}
  while at < over do
    local tag, size, more = byte(slice, at, at + 2)
    if tag == HEADER then
      local name_tag, name, value_tag, value, after
      if size < SHORT then
        -- Nearly always: everything is short enough for lengths of one byte.
        name_tag, name, value_tag, value, after = unpack("Bs1Bs1", slice, at + 2)
      end
      if name_tag == NAME and value_tag == VALUE and after == at + 2 + size then
        shown[name], at = value, after
      else
        at = read_header(slice, at + 1, shown)
      end
    elseif tag ~= PAYLOAD then
      break
    elseif size < 128 then
      return shown, size
    elseif more < 128 then
      return shown, size - 128 + (more << 7)
    else
      return shown, (varint(slice, at + 1))
    end
  end
  return shown, 0
end
