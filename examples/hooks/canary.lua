-- canary.lua: a small, fixed part of the tenants gets the new treatment: here, a key of its own.
local function bucket_of(text)
  local sum = 0
  for i = 1, #text do
    sum = (sum * 31 + text:byte(i)) % 100
  end
  return sum
end

function on_enqueue(msg)
  local tenant = msg.headers.tenant or "anonymous"
  local share = tonumber(fila.get("canary:percent")) or 0
  if bucket_of(tenant) < share then
    return { fairness_key = "canary:" .. tenant, throttle_keys = { "canary" } }
  end
  return { fairness_key = tenant }
end
