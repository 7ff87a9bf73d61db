-- fila.helpers: what many scripts want, so that not each of them writes it again.

local native, parts = ...
local type, error, tonumber, floor = native.type, native.error, native.tonumber, native.math.floor
local config = parts.config

local DELAY_MAX_MS = 100 * 365 * 24 * 3600 * 1000

local policies = {}

local function number(value, position, name, default)
  if value == nil and default ~= nil then return default end
  local result = tonumber(value)
  if result == nil or result ~= result then
    error("bad argument #" .. position .. " to '" .. name .. "' (number expected, got " .. type(value) .. ")", 3)
  end
  return result
end

-- How long to wait before the next attempt: base, 2 × base, 4 × base … and never more than the most.
function policies.exponential_backoff(attempts, base_ms, max_ms)
  attempts = number(attempts, 1, "exponential_backoff")
  base_ms = number(base_ms, 2, "exponential_backoff", 1000)
  max_ms = number(max_ms, 3, "exponential_backoff", 300000)
  local exponent = attempts > 1 and attempts - 1 or 0
  if exponent > 64 then exponent = 64 end
  local delay_ms = base_ms * 2.0 ^ floor(exponent)
  if delay_ms > max_ms then delay_ms = max_ms end
  if delay_ms < 0 then return 0 end
  if delay_ms > DELAY_MAX_MS then return DELAY_MAX_MS end
  return floor(delay_ms)
end

-- The fairness key and weight of a tenant: `header` names the tenant, and the runtime config's
-- weight:<tenant> its weight.
function policies.tenant_route(msg, header, default)
  if type(msg) ~= "table" or not msg.headers then
    error("bad argument #1 to 'tenant_route' (msg expected)", 2)
  end
  local tenant = msg.headers[header or "tenant"]
  if tenant == nil or tenant == "" then tenant = default or "default" end
  return { fairness_key = tenant, weight = tonumber(config.get("weight:" .. tenant)) }
end

-- A throttle key <header>:<value> for each of the named headers that the message has.
function policies.rate_limit_keys(msg, ...)
  if type(msg) ~= "table" or not msg.headers then
    error("bad argument #1 to 'rate_limit_keys' (msg expected)", 2)
  end
  local keys, count = {}, native.select("#", ...)
  for index = 1, count do
    local name = native.select(index, ...)
    local value = msg.headers[name]
    if value ~= nil and value ~= "" then keys[#keys + 1] = name .. ":" .. value end
  end
  return keys
end

-- What on_failure returns to give up after so many attempts, and to back off until then.
function policies.max_retries(msg, most, base_ms, max_ms)
  if type(msg) ~= "table" or not msg.attempts then
    error("bad argument #1 to 'max_retries' (the msg of on_failure expected)", 2)
  end
  if msg.attempts >= number(most, 2, "max_retries") then return { action = "dlq" } end
  return {
    action = "retry",
    delay_ms = policies.exponential_backoff(msg.attempts, base_ms, max_ms),
  }
end

return policies
