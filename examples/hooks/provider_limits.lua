-- provider_limits.lua: calls to a provider share its limit, whoever makes them.
function on_enqueue(msg)
  local keys = {}
  if msg.headers.provider then
    keys[1] = "provider:" .. msg.headers.provider
  end
  return { fairness_key = msg.headers.tenant, throttle_keys = keys }
end
