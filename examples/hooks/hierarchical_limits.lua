-- hierarchical_limits.lua: the provider's limit, the tenant's part of it, and one for the region.
-- A message is delivered when all of its buckets have a token; a key without a limit limits nothing.
function on_enqueue(msg)
  local h = msg.headers
  return {
    fairness_key = h.tenant,
    throttle_keys = {
      "provider:" .. h.provider,
      "provider:" .. h.provider .. ":tenant:" .. h.tenant,
      "region:" .. (h.region or "default"),
    },
  }
end
