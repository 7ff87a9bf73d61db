-- A message's headers, read from the bytes in which they came: for each of them a tag, a length, and
-- a message of a name and a value. The broker serialized them, so they are whole.

local native, parts = ...
local byte, sub, find, unpack = native.string.byte, native.string.sub, native.string.find, native.string.unpack
local watch = parts.watch

local NAME, VALUE = 10, 18
-- Longer texts are looked into for NULs, which make them slow to compare.
local SHORT = 64
local function varint(text, at)
  local value, shift, group = 0, 0, nil
  repeat
    group = byte(text, at)
    value, shift, at = value | (group & 127) << shift, shift + 7, at + 1
  until group < 128
  return value, at
end

-- A header of any length, with its fields in any order; where the next one begins.
local function read_long(text, at, headers)
  local size, name, value = nil, "", ""
  size, at = varint(text, at + 1)
  local over = at + size
  while at < over do
    local tag, length = byte(text, at), nil
    length, at = varint(text, at + 1)
    local part = sub(text, at, at + length - 1)
    if length > SHORT and find(part, "\0", 1, true) then watch.closely() end
    if tag == NAME then name = part else value = part end
    at = at + length
  end
  headers[name] = value
  return over
end

return function(text)
  local headers, at, over = {}, 1, #text
  while at <= over do
    local size = byte(text, at + 1)
    local name_tag, name, value_tag, value, after
    if size < SHORT then
      -- Nearly always: everything is short enough for lengths of one byte.
      name_tag, name, value_tag, value, after = unpack("Bs1Bs1", text, at + 2)
    end
    if name_tag == NAME and value_tag == VALUE and after == at + 2 + size then
      headers[name], at = value, after
    else
      at = read_long(text, at, headers)
    end
  end
  return headers
end
