-- feature_flag.lua: `fila config set feature:big_jobs_wait on` takes effect with the next message.
function on_enqueue(msg)
  local result = { fairness_key = msg.headers.tenant }
  if fila.get("feature:big_jobs_wait") == "on" and msg.payload_size > 100000 then
    -- Each counts for ten of the tenant's messages, whatever priority its producer asked for.
    result.cost = 10
    result.priority = 0
  end
  return result
end
