-- fila.get: the runtime config, read through a small cache.
--
-- What is not in the cache is fetched by a call out of Lua. No limit on memory holds meanwhile: one
-- that hits while the value is handed over would end the process.

local native, parts = ...
local type, find = native.type, native.string.find
local fetch, resume_limit, watch = parts.settings.fetch, parts.settings.resume_limit, parts.watch

local KEYS_MAX = 256
local KEY_BYTES_MAX = parts.settings.config_key_bytes_max

local config = {}
local values, count = {}, 0

function config.forget()
  values, count = {}, 0
end

function config.get(key)
  if type(key) ~= "string" or #key > KEY_BYTES_MAX then return nil end
  local value = values[key]
  if value == nil then
    if count >= KEYS_MAX then config.forget() end
    value = fetch(key) or false
    values[key], count = value, count + 1
    if value and find(value, "\0", 1, true) then watch.closely() end
    resume_limit()
  end
  return value or nil
end

return config
