-- tenants.lua: each tenant has its turn; what has no tenant shares one.
function on_enqueue(msg)
  return { fairness_key = msg.headers.tenant or "anonymous" }
end
