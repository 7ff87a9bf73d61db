-- paid_tiers.lua: who pays more has a larger share; what a plan is worth can be changed at any time.
local weights = { free = 1, team = 3, enterprise = 10 }

function on_enqueue(msg)
  local plan = msg.headers.plan or "free"
  return {
    fairness_key = msg.headers.tenant,
    weight = fila.get("weight:" .. plan) or weights[plan] or 1,
  }
end
