-- Lua's pattern matching, in Lua: what lstrlib.c does, step by step, so that the watch sees it.
--
-- It agrees with the original in results and errors, oddities included: a pattern's end reads as a
-- NUL, and so does the subject's.

local native = ...
local byte, sub, find = native.string.byte, native.string.sub, native.string.find
local error = native.error

local CAPTURES_MAX = 32
local DEPTH_MAX = 200
local UNFINISHED, POSITION = -1, -2

-- Which bytes belong to a class, by its letter; made when it is first asked for.
local CLASSES = "acdglpsuwxz"
local members = {}

local function class_members(letter)
  local set = {}
  for code = 0, 255 do
    set[code] = find(native.string.char(code), "^%" .. native.string.char(letter)) ~= nil
  end
  members[letter] = set
  return set
end

local function in_class(code, letter)
  local set = members[letter]
  if set == nil then
    local is_class = find(CLASSES, native.string.lower(native.string.char(letter)), 1, true)
    if not is_class then
      members[letter] = false
      return code == letter
    end
    set = class_members(letter)
  end
  if not set then return code == letter end
  return set[code]
end

-- `state`: subject, pattern, size, stop (the pattern's length), depth, level, from[], length[].
-- Positions are Lua's: the subject ends before size + 1, the pattern before stop + 1.

local function class_end(state, at)
  local pattern, stop = state.pattern, state.stop
  local code = byte(pattern, at)
  at = at + 1
  if code == 37 then -- %
    if at > stop then error("malformed pattern (ends with '%')", 0) end
    return at + 1
  elseif code == 91 then -- [
    if byte(pattern, at) == 94 then at = at + 1 end -- ^
    repeat
      if at > stop then error("malformed pattern (missing ']')", 0) end
      code = byte(pattern, at)
      at = at + 1
      if code == 37 and at <= stop then at = at + 1 end
    until byte(pattern, at) == 93 -- ]
    return at + 1
  end
  return at
end

-- Whether the set from `at` to `last`, which is its ], holds the byte.
local function in_set(state, code, at, last)
  local pattern = state.pattern
  local found = true
  if byte(pattern, at + 1) == 94 then -- ^
    found = false
    at = at + 1
  end
  at = at + 1
  while at < last do
    local item = byte(pattern, at)
    if item == 37 then -- %
      at = at + 1
      if in_class(code, byte(pattern, at) or 0) then return found end
    elseif byte(pattern, at + 1) == 45 and at + 2 < last then -- -
      at = at + 2
      if item <= code and code <= byte(pattern, at) then return found end
    elseif item == code then
      return found
    end
    at = at + 1
  end
  return not found
end

local function single(state, position, at, after)
  if position > state.size then return false end
  local code, item = byte(state.subject, position), byte(state.pattern, at)
  if item == 46 then return true end -- .
  if item == 37 then return in_class(code, byte(state.pattern, at + 1) or 0) end
  if item == 91 then return in_set(state, code, at, after - 1) end
  return item == code
end

local function balance(state, position, at)
  if at >= state.stop then error("malformed pattern (missing arguments to '%b')", 0) end
  local subject = state.subject
  local opening, closing = byte(state.pattern, at), byte(state.pattern, at + 1)
  if (byte(subject, position) or 0) ~= opening then return nil end
  local open = 1
  for index = position + 1, state.size do
    local code = byte(subject, index)
    if code == closing then
      open = open - 1
      if open == 0 then return index + 1 end
    elseif code == opening then
      open = open + 1
    end
  end
  return nil
end

local match

local function most(state, position, at, after)
  local count = 0
  while single(state, position + count, at, after) do count = count + 1 end
  while count >= 0 do
    local stop = match(state, position + count, after + 1)
    if stop then return stop end
    count = count - 1
  end
  return nil
end

local function fewest(state, position, at, after)
  while true do
    local stop = match(state, position, after + 1)
    if stop then return stop end
    if not single(state, position, at, after) then return nil end
    position = position + 1
  end
end

local function open_capture(state, position, at, what)
  local level = state.level
  if level >= CAPTURES_MAX then error("too many captures", 0) end
  state.from[level + 1], state.length[level + 1] = position, what
  state.level = level + 1
  local stop = match(state, position, at)
  if not stop then state.level = state.level - 1 end
  return stop
end

local function close_capture(state, position, at)
  local level = state.level
  while level > 0 and state.length[level] ~= UNFINISHED do level = level - 1 end
  if level == 0 then error("invalid pattern capture", 0) end
  state.length[level] = position - state.from[level]
  local stop = match(state, position, at)
  if not stop then state.length[level] = UNFINISHED end
  return stop
end

local function same_as_capture(state, position, digit)
  local level = digit - 48
  if level < 1 or level > state.level or state.length[level] == UNFINISHED then
    error("invalid capture index %" .. level, 0)
  end
  local length, from = state.length[level], state.from[level]
  -- A position's length is a huge number to the original: nothing is as long.
  if length == POSITION or state.size - position + 1 < length then return nil end
  if sub(state.subject, from, from + length - 1) ~= sub(state.subject, position, position + length - 1) then
    return nil
  end
  return position + length
end

local function frontier(state, position, at)
  if byte(state.pattern, at) ~= 91 then error("missing '[' after '%f' in pattern", 0) end
  local after = class_end(state, at)
  local before = position > 1 and byte(state.subject, position - 1) or 0
  local here = byte(state.subject, position) or 0
  if in_set(state, before, at, after - 1) or not in_set(state, here, at, after - 1) then return nil end
  return after
end

-- An item with what may follow it. Gives the end; or nil and where to go on in subject and pattern.
local function item(state, position, at)
  local after = class_end(state, at)
  local suffix = byte(state.pattern, after)
  if not single(state, position, at, after) then
    if suffix == 42 or suffix == 63 or suffix == 45 then return nil, position, after + 1 end
    return nil
  elseif suffix == 63 then -- ?
    local stop = match(state, position + 1, after + 1)
    if stop then return stop end
    return nil, position, after + 1
  elseif suffix == 43 then -- +
    return most(state, position + 1, at, after)
  elseif suffix == 42 then -- *
    return most(state, position, at, after)
  elseif suffix == 45 then -- -
    return fewest(state, position, at, after)
  end
  return nil, position + 1, after
end

-- What begins with %: as in item.
local function escape(state, position, at)
  local code = byte(state.pattern, at + 1)
  if code == 98 then -- b
    local stop = balance(state, position, at + 2)
    return nil, stop, at + 4
  elseif code == 102 then -- f
    local after = frontier(state, position, at + 2)
    return nil, after and position, after
  elseif code and code >= 48 and code <= 57 then
    local stop = same_as_capture(state, position, code)
    return nil, stop, at + 2
  end
  return item(state, position, at)
end

-- Where the match ends that begins at a position; nil if there is none.
function match(state, position, at)
  if state.depth == 0 then error("pattern too complex", 0) end
  state.depth = state.depth - 1
  local stop = state.stop
  local result
  while true do
    if at > stop then
      result = position
      break
    end
    local code = byte(state.pattern, at)
    local following
    if code == 40 then -- (
      if byte(state.pattern, at + 1) == 41 then -- )
        result = open_capture(state, position, at + 2, POSITION)
      else
        result = open_capture(state, position, at + 1, UNFINISHED)
      end
    elseif code == 41 then
      result = close_capture(state, position, at + 1)
    elseif code == 36 and at == stop then -- $
      result = position == state.size + 1 and position or nil
    elseif code == 37 then
      result, position, following = escape(state, position, at)
    else
      result, position, following = item(state, position, at)
    end
    if not following or not position then break end
    at = following
  end
  state.depth = state.depth + 1
  return result
end

local patterns = {}

-- A match to be: of a pattern without its anchor.
function patterns.state(subject, pattern)
  return {
    subject = subject, pattern = pattern, size = #subject, stop = #pattern,
    depth = DEPTH_MAX, level = 0, from = {}, length = {},
  }
end

-- The end of the match that begins at a position, as the position behind it.
function patterns.try(state, position)
  state.level = 0
  return match(state, position, 1)
end

-- One capture; the whole match where the pattern has none.
function patterns.capture(state, index, first, stop)
  if index > state.level then
    if index ~= 1 then error("invalid capture index %" .. index, 0) end
    return sub(state.subject, first, stop - 1)
  end
  local length, from = state.length[index], state.from[index]
  if length == UNFINISHED then error("unfinished capture", 0) end
  if length == POSITION then return from end
  return sub(state.subject, from, from + length - 1)
end

-- All captures; the whole match where the pattern has none and `first` is given.
function patterns.captures(state, first, stop, index)
  index = index or 1
  local count = (state.level == 0 and first) and 1 or state.level
  if index > count then return end
  local value = patterns.capture(state, index, first, stop)
  if index == count then return value end
  return value, patterns.captures(state, first, stop, index + 1)
end

return patterns
