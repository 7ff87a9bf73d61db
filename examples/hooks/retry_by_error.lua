-- retry_by_error.lua: what can't get better is put aside at once; what is overloaded is left in peace.
function on_failure(msg)
  local err = msg.error:lower()
  if err:find("not found", 1, true) or err:find("invalid", 1, true) then
    return { action = "dlq" }
  end
  if err:find("429", 1, true) or err:find("rate limit", 1, true) then
    -- Behind its own limit from now on, and not before a minute has passed.
    return { action = "retry", delay_ms = 60000, throttle_keys = { "after-429" } }
  end
  if msg.attempts >= 8 then
    return { action = "dlq" }
  end
  -- 1 s, 2 s, 4 s, … and never more than ten minutes.
  return { action = "retry", delay_ms = math.min(1000 * 2 ^ (msg.attempts - 1), 600000) }
end
