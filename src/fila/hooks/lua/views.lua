-- msg and msg.headers: objects that show the message at hand and let nobody change it. The same two
-- for all messages: a table less for each of them is time that the scripts have.

local native = ...
local raw_next, raw_get, raw_set, raw_len = native.next, native.rawget, native.rawset, native.rawlen
local error = native.error

local views = {}
-- What each object shows, and what it says to those who want to change it.
local shown, refusals = {}, {}

-- An object that shows what the table `class.__index` has.
local function view(class, name)
  local object = {}
  local refusal = name .. " is read-only; return what the message should get instead"
  local function refuse() error(refusal, 2) end
  class.__newindex, class.__metatable = refuse, false
  class.__pairs = function() return views.next, object, nil end
  class.__len = function() return raw_len(class.__index) end
  shown[object], refusals[object] = class.__index, refuse
  return native.setmetatable(object, class)
end

function views.next(object, key)
  return raw_next(shown[object] or object, key)
end

function views.rawget(object, key)
  return raw_get(shown[object] or object, key)
end

function views.rawlen(object)
  return raw_len(shown[object] or object)
end

function views.rawset(object, key, value)
  if refusals[object] then refusals[object]() end
  return raw_set(object, key, value)
end

local headers_class = { __index = {} }
views.headers = view(headers_class, "msg.headers")
-- What scripts find in msg; set for each message.
views.fields = { headers = views.headers }
views.message = view({ __index = views.fields }, "msg")

-- The headers of the message at hand.
function views.show(headers)
  shown[views.headers] = headers
  headers_class.__index = headers
end

return views
