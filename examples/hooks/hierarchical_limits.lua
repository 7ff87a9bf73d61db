-- hierarchical_limits.lua: the provider's limit, the tenant's part of it, and one for the region.
-- A message is delivered when all of its buckets have a token; a key without a limit limits nothing.
function on_enqueue(msg)
  local tenant = msg.headers.tenant or "anonymous"
  local keys = { "region:" .. (msg.headers.region or "default") }
  if msg.headers.provider then
    local provider = "provider:" .. msg.headers.provider
    table.insert(keys, provider)
    table.insert(keys, provider .. ":tenant:" .. tenant)
  end
  return { fairness_key = tenant, throttle_keys = keys }
end
