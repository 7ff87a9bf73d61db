-- The base library as scripts see it.

local native, parts = ...
local type, error, pcall = native.type, native.error, native.pcall
local raw_get, metatable_of, set_metatable = native.rawget, native.metatable_of, native.setmetatable
local find, watch, views = native.string.find, parts.watch, parts.views
local state = watch.state

local OUT_OF_MEMORY = "not enough memory"
local WHILE_HANDLING = "error in error handling"
local PROBLEM_BYTES_MAX = 500
-- What a metatable may say. __gc would run where no watch looks; weak tables (__mode) can be laid
-- out so that one garbage collection takes for ever.
local EVENTS = {
  "__add", "__sub", "__mul", "__div", "__mod", "__pow", "__unm", "__idiv", "__band", "__bor",
  "__bxor", "__shl", "__shr", "__bnot", "__concat", "__len", "__eq", "__lt", "__le", "__call",
  "__close", "__tostring", "__name", "__metatable", "__pairs",
}
local FORBIDDEN = { "__gc", "__mode" }
local ORIGINAL = {}
local COPIES_MAX = 64
local PROTECTED_MAX = 20

-- A time-out, a lack of memory and an overflow of the stack end the call: no script may catch them.
-- The last because the watch needs some stack itself; where there is none it does not look.
local function is_fatal(problem)
  if watch.is_over() then return true end
  if type(problem) ~= "string" or #problem > PROBLEM_BYTES_MAX then return false end
  return problem == OUT_OF_MEMORY or problem == WHILE_HANDLING
    or find(problem, "stack overflow", 1, true) ~= nil
end

local function outcome(ok, ...)
  state.protected = state.protected - 1
  if not ok and is_fatal((...)) then error((...), 0) end
  return ok, ...
end

-- A handler that runs because of a fatal error may not put another in its place.
local function closing(handler)
  return function(object, problem)
    if problem ~= nil and is_fatal(problem) then
      watch.give_up()
      error(problem, 0)
    end
    return handler(object, problem)
  end
end

-- A time-out goes up through every pcall there is, and each may have a deep stack to clear away.
local function protected(...)
  if state.protected >= PROTECTED_MAX then error("too many pcalls within each other", 2) end
  state.protected = state.protected + 1
  return outcome(pcall(...))
end

-- Tables get a copy of the metatable, which no script ever sees: whatever is added to the original
-- later (__mode!) has no effect. Only __index and __newindex are looked up anew each time.
local copies, copied = {}, 0

local function live_index(original)
  return function(object, key)
    local found = raw_get(original, "__index")
    if found == nil then return nil end
    if type(found) == "function" then return found(object, key) end
    return found[key]
  end
end

local function live_newindex(original)
  return function(object, key, value)
    local found = raw_get(original, "__newindex")
    if found == nil then
      views.rawset(object, key, value)
    elseif type(found) == "function" then
      found(object, key, value)
    else
      found[key] = value
    end
  end
end

local function copy_for(original)
  local copy = copies[original]
  if not copy then
    if copied >= COPIES_MAX then copies, copied = {}, 0 end
    copy = { [ORIGINAL] = original }
    copies[original], copied = copy, copied + 1
  end
  for index = 1, #EVENTS do
    local event = EVENTS[index]
    copy[event] = raw_get(original, event)
  end
  if copy.__close ~= nil then copy.__close = closing(copy.__close) end
  copy.__index = raw_get(original, "__index") or live_index(original)
  copy.__newindex = raw_get(original, "__newindex") or live_newindex(original)
  return copy
end

local function protection(object)
  local copy = metatable_of(object)
  if copy and raw_get(copy, "__metatable") ~= nil then return raw_get(copy, "__metatable") end
  return nil, copy
end

local base = {
  assert = native.assert,
  error = native.error,
  ipairs = native.ipairs,
  next = views.next,
  pcall = protected,
  rawequal = native.rawequal,
  rawget = views.rawget,
  rawlen = views.rawlen,
  rawset = views.rawset,
  select = native.select,
  tonumber = native.tonumber,
  tostring = native.tostring,
  type = native.type,
  _VERSION = native.version,
}

function base.getmetatable(object)
  local kept, copy = protection(object)
  if kept ~= nil then return kept end
  return copy and copy[ORIGINAL]
end

function base.setmetatable(object, metatable)
  if type(object) ~= "table" then
    error("bad argument #1 to 'setmetatable' (table expected, got " .. type(object) .. ")", 2)
  elseif metatable ~= nil and type(metatable) ~= "table" then
    error("bad argument #2 to 'setmetatable' (nil or table expected)", 2)
  elseif protection(object) ~= nil then
    error("cannot change a protected metatable", 2)
  elseif metatable == nil then
    return set_metatable(object, nil)
  end
  for index = 1, #FORBIDDEN do
    if raw_get(metatable, FORBIDDEN[index]) ~= nil then
      error(FORBIDDEN[index] .. " is not available to scripts", 2)
    end
  end
  return set_metatable(object, copy_for(metatable))
end

function base.pairs(object)
  local metatable = metatable_of(object)
  local iterate = metatable and raw_get(metatable, "__pairs")
  if iterate then
    local following, state, first = iterate(object)
    return following, state, first
  elseif type(object) ~= "table" then
    error("bad argument #1 to 'pairs' (table expected, got " .. type(object) .. ")", 2)
  end
  return native.next, object, nil
end

return base
