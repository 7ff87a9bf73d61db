-- The string library as scripts see it; what matches patterns is in matching.lua.

local native, parts = ...
local string, type, error = native.string, native.type, native.error
local watch = parts.watch
local find, rep = string.find, string.rep

local FORMAT_BYTES_MAX = 256
local BLOCK = 64

local strings = {
  byte = string.byte,
  len = string.len,
  lower = string.lower,
  reverse = string.reverse,
  sub = string.sub,
  upper = string.upper,
}

-- What may hold a NUL now.
local function made(text)
  if find(text, "\0", 1, true) then watch.closely() end
  return text
end

function strings.char(...)
  return made(string.char(...))
end

function strings.format(form, ...)
  if type(form) == "string" and #form > FORMAT_BYTES_MAX then
    error("bad argument #1 to 'format' (longer than " .. FORMAT_BYTES_MAX .. " bytes)", 2)
  end
  return made(string.format(form, ...))
end

-- Copies of few bytes are made in blocks: Lua's own copies them one by one.
function strings.rep(text, count, separator)
  if type(text) == "number" then text = native.tostring(text) end
  if type(separator) == "number" then separator = native.tostring(separator) end
  count = native.tointeger(native.tonumber(count)) or count
  if type(text) ~= "string" or native.math_type(count) ~= "integer"
    or separator ~= nil and type(separator) ~= "string" then
    return rep(text, count, separator)
  elseif text == "" and (separator == nil or separator == "") then
    return ""
  end
  if separator ~= nil and separator ~= "" then
    if count <= BLOCK then return rep(text, count, separator) end
    return rep(text .. separator, count - 1) .. text
  elseif count <= BLOCK or #text >= BLOCK then
    return rep(text, count)
  end
  return rep(rep(text, BLOCK), count // BLOCK) .. rep(text, count % BLOCK)
end

return strings
