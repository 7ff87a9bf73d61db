-- Bodies of on_enqueue that are known to get past twice their time, by one instruction that nothing can
-- interrupt. They are stopped after it; how long it takes is recorded and stands in the decision (ADR 8).

--- growth of a table of colliding keys
local t = {}
for i = 0, 8192 do t[i * 16383 + (1 << 33)] = true end
while true do end
