-- msg.headers: one object that shows the current message's headers and lets nobody change them.

local native = ...
local raw_next, raw_get, raw_set, raw_len = native.next, native.rawget, native.rawset, native.rawlen
local error = native.error

local headers = {}
local shown = {}
local proxy = {}

local function refuse()
  error("msg.headers is read-only; return what the message should get instead", 2)
end

local class = { __index = shown, __newindex = refuse, __metatable = false }

-- What the object shows from now on.
function headers.show(current)
  shown = current
  class.__index = current
end

function headers.next(object, key)
  if object == proxy then return raw_next(shown, key) end
  return raw_next(object, key)
end

class.__pairs = function() return headers.next, proxy, nil end
class.__len = function() return raw_len(shown) end

function headers.rawget(object, key)
  if object == proxy then return shown[key] end
  return raw_get(object, key)
end

function headers.rawlen(object)
  if object == proxy then return raw_len(shown) end
  return raw_len(object)
end

function headers.rawset(object, key, value)
  if object == proxy then refuse() end
  return raw_set(object, key, value)
end

headers.proxy = native.setmetatable(proxy, class)

return headers
