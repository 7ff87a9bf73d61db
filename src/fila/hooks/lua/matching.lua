-- find, match, gmatch and gsub: by Lua's own matcher where that cannot take long, else by ours.
--
-- Lua's own is one C call that nothing interrupts, and a pattern can make it backtrack for ever. How
-- long it takes at most follows from the lengths: each repetition tries at most every position, and
-- so does the search for the beginning.

local native, parts = ...
local string, type, error, tostring = native.string, native.type, native.error, native.tostring
local find, match, gmatch, gsub = string.find, string.match, string.gmatch, string.gsub
local byte, sub = string.byte, string.sub
local patterns, look = parts.patterns, parts.watch.look

-- Steps of a few nanoseconds.
local STEPS_MAX = 200000
-- Above this the clock is looked at before each call.
local STEPS_UNSEEN_MAX = 10000
local KNOWN_MAX = 100
local KNOWN_BYTES_MAX = 200

-- How many nested loops a pattern comes to; counted on the high side.
local known, known_count = {}, 0

local function loops(pattern)
  local count = byte(pattern) == 94 and 0 or 1
  local size = #pattern
  local at = 1
  while at <= size do
    local code = byte(pattern, at)
    if code == 42 or code == 43 or code == 45 or code == 63 then -- * + - ?
      count = count + 1
    elseif code == 37 then -- %
      at = at + 1
      code = byte(pattern, at)
      if code and (code == 98 or code >= 48 and code <= 57) then count = count + 1 end
    end
    at = at + 1
  end
  if size <= KNOWN_BYTES_MAX then
    if known_count >= KNOWN_MAX then known, known_count = {}, 0 end
    known[pattern], known_count = count, known_count + 1
  end
  return count
end

-- `searches`: whether a ^ does not keep the match to one place.
local function is_quick(subject, pattern, searches)
  local work = #pattern + 1
  local span = #subject + 2
  if searches then work = work * span end
  if span * work > STEPS_MAX then return false end
  for _ = 1, known[pattern] or loops(pattern) do
    work = work * span
    if work > STEPS_MAX then return false end
  end
  if work > STEPS_UNSEEN_MAX then look() end
  return true
end

local function text(value, position, name)
  if type(value) == "string" then return value end
  if type(value) == "number" then return tostring(value) end
  local got = value == nil and "no value" or type(value)
  error("bad argument #" .. position .. " to '" .. name .. "' (string expected, got " .. got .. ")", 3)
end

local function integer(value, position, name, default)
  if value == nil then return default end
  local number = native.tointeger(native.tonumber(value))
  if number then return number end
  local problem = "number expected, got " .. type(value)
  if native.tonumber(value) then problem = "number has no integer representation" end
  error("bad argument #" .. position .. " to '" .. name .. "' (" .. problem .. ")", 3)
end

-- Where a search begins that was asked to begin at `init`.
local function beginning(init, size)
  if init > 0 then return init end
  if init == 0 or init < -size then return 1 end
  return size + init + 1
end

local function find_plain(subject, wanted, from)
  local size, length = #subject, #wanted
  if length == 0 then return from, from - 1 end
  if (size + 2) * (length + 1) <= STEPS_MAX then return find(subject, wanted, from, true) end
  local first = sub(wanted, 1, 1)
  while true do
    from = find(subject, first, from, true)
    if not from or from + length - 1 > size then return nil end
    if sub(subject, from, from + length - 1) == wanted then return from, from + length - 1 end
    from = from + 1
  end
end

local function is_literal(pattern)
  return not find(pattern, "[%^%$%*%+%?%.%(%[%%%-]")
end

local matching = {}

function matching.find(subject, pattern, init, plain)
  subject, pattern = text(subject, 1, "find"), text(pattern, 2, "find")
  if is_quick(subject, pattern) then return find(subject, pattern, init, plain) end
  local from = beginning(integer(init, 3, "find", 1), #subject)
  if from > #subject + 1 then return nil end
  if plain or is_literal(pattern) then return find_plain(subject, pattern, from) end
  local anchored = byte(pattern) == 94
  local state = patterns.state(subject, anchored and sub(pattern, 2) or pattern)
  repeat
    local stop = patterns.try(state, from)
    if stop then return from, stop - 1, patterns.captures(state) end
    from = from + 1
  until anchored or from > #subject + 1
  return nil
end

function matching.match(subject, pattern, init)
  subject, pattern = text(subject, 1, "match"), text(pattern, 2, "match")
  if is_quick(subject, pattern) then return match(subject, pattern, init) end
  local from = beginning(integer(init, 3, "match", 1), #subject)
  if from > #subject + 1 then return nil end
  local anchored = byte(pattern) == 94
  local state = patterns.state(subject, anchored and sub(pattern, 2) or pattern)
  repeat
    local stop = patterns.try(state, from)
    if stop then return patterns.captures(state, from, stop) end
    from = from + 1
  until anchored or from > #subject + 1
  return nil
end

function matching.gmatch(subject, pattern, init)
  subject, pattern = text(subject, 1, "gmatch"), text(pattern, 2, "gmatch")
  if is_quick(subject, pattern, byte(pattern) == 94) then return gmatch(subject, pattern, init) end
  local from = beginning(integer(init, 3, "gmatch", 1), #subject)
  local state, last = patterns.state(subject, pattern), nil
  return function()
    while from <= #subject + 1 do
      local first = from
      local stop = patterns.try(state, first)
      if stop and stop ~= last then
        from, last = stop, stop
        return patterns.captures(state, first, stop)
      end
      from = first + 1
    end
    return nil
  end
end

-- A replacement string for one match.
local function filled(state, replacement, first, stop)
  local pieces, count, at = {}, 0, 1
  while true do
    local escape = find(replacement, "%", at, true)
    if not escape then break end
    local code = byte(replacement, escape + 1)
    local piece
    if code == 37 then
      piece = "%"
    elseif code == 48 then
      piece = sub(state.subject, first, stop - 1)
    elseif code and code >= 49 and code <= 57 then
      piece = tostring(patterns.capture(state, code - 48, first, stop))
    else
      error("invalid use of '%' in replacement string", 0)
    end
    pieces[count + 1], pieces[count + 2] = sub(replacement, at, escape - 1), piece
    count, at = count + 2, escape + 2
  end
  if count == 0 then return replacement end
  pieces[count + 1] = sub(replacement, at)
  return native.concat(pieces)
end

local function replaced(state, kind, replacement, first, stop)
  if kind == "string" then return filled(state, replacement, first, stop) end
  local value
  if kind == "table" then
    value = replacement[patterns.capture(state, 1, first, stop)]
  else
    value = replacement(patterns.captures(state, first, stop))
  end
  if not value then return nil end
  if type(value) ~= "string" and type(value) ~= "number" then
    error("invalid replacement value (a " .. type(value) .. ")", 0)
  end
  return value
end

local REPLACEMENTS = { string = "string", number = "string", table = "table", ["function"] = "function" }

function matching.gsub(subject, pattern, replacement, most)
  subject, pattern = text(subject, 1, "gsub"), text(pattern, 2, "gsub")
  most = integer(most, 4, "gsub", #subject + 1)
  local kind = REPLACEMENTS[type(replacement)]
  if not kind then
    local got = replacement == nil and "nil" or type(replacement)
    error("bad argument #3 to 'gsub' (string/function/table expected, got " .. got .. ")", 2)
  end
  if kind == "string" then replacement = tostring(replacement) end
  -- Lua's own reads a replacement string once for each match.
  local read = kind == "string" and #replacement * (#subject + 1) or 0
  if read <= STEPS_MAX and is_quick(subject, pattern) then
    return gsub(subject, pattern, replacement, most)
  end
  local anchored = byte(pattern) == 94
  local state = patterns.state(subject, anchored and sub(pattern, 2) or pattern)
  local pieces, count, changed = {}, 0, false
  local from, kept, done, last = 1, 1, 0, nil
  while done < most do
    local stop = patterns.try(state, from)
    if stop and stop ~= last then
      done = done + 1
      local value = replaced(state, kind, replacement, from, stop)
      if value then
        pieces[count + 1], pieces[count + 2] = sub(subject, kept, from - 1), value
        count, kept, changed = count + 2, stop, true
      end
      from, last = stop, stop
    elseif from <= #subject then
      from = from + 1
    else
      break
    end
    if anchored then break end
  end
  if not changed then return subject, done end
  pieces[count + 1] = sub(subject, kept)
  return native.concat(pieces), done
end

return matching
