-- The utf8 library as scripts see it.

local native, parts = ...
local utf8, type, error = native.utf8, native.type, native.error
local watch = parts.watch

-- Lua's own walk through the text without a look at the clock, slower than anything else does.
local TEXT_BYTES_MAX = 65536
local VALUES_MAX = 4000

local codes = { charpattern = utf8.charpattern }

local function check(text, name)
  if type(text) == "string" and #text > TEXT_BYTES_MAX then
    error("bad argument #1 to '" .. name .. "' (longer than " .. TEXT_BYTES_MAX .. " bytes)", 3)
  end
end

function codes.char(...)
  local text = utf8.char(...)
  if native.string.find(text, "\0", 1, true) then watch.closely() end
  return text
end

function codes.codes(text, lax)
  check(text, "codes")
  return utf8.codes(text, lax)
end

function codes.codepoint(text, first, last, lax)
  check(text, "codepoint")
  first = first == nil and 1 or first
  last = last == nil and first or last
  local from, to = native.tointeger(native.tonumber(first)), native.tointeger(native.tonumber(last))
  if type(text) == "string" and from and to and to >= from then
    if from < 0 then from = #text + from + 1 end
    if to < 0 then to = #text + to + 1 end
    if to - from >= VALUES_MAX then error("bad argument #3 to 'codepoint' (too many values)", 2) end
  end
  return utf8.codepoint(text, first, last, lax)
end

function codes.len(text, first, last, lax)
  check(text, "len")
  return utf8.len(text, first, last, lax)
end

function codes.offset(text, count, start)
  check(text, "offset")
  return utf8.offset(text, count, start)
end

return codes
