-- The watch over a running script: a count hook that looks at the clock.
--
-- os.clock is the whole process's CPU time and includes what other threads do meanwhile, so it is
-- only an upper bound of what the script took. When it says that the time is over, the exact figure
-- of this thread is asked for, and a script that was charged for others' work goes on.
--
-- To read the clock costs as much as a small script, so a call that begins soon after the last is
-- not timed from the beginning: the first look says when it began, a few instructions late.

local native, parts = ...
local clock, sethook, error = native.clock, native.sethook, native.error
local cpu, timeout = parts.settings.cpu, parts.settings.timeout
-- Of the run in progress: the time limit, or less where somebody waits for it.
local limit = timeout

local TOO_LONG = "the call took longer than its time limit"
-- A comparison of strings that hold NULs costs so much more per byte than anything else.
local NUL_FACTOR = 16

-- Of the call that is running: how often it was looked at, whether it began without a look, and how
-- many pcalls it is in.
local state = { looks = 0, untimed = false, protected = 0 }
local watch = { too_long = TOO_LONG, state = state }

local started, deadline, expired, given_up = 0, 0, false, false
-- What the two clocks showed when they were last compared.
local clock_then, cpu_then = 0, 0
local interval, careful = 1000, false

-- Take out of the running call's account what other threads did since the clocks were compared.
local function compare(now)
  local cpu_now = cpu()
  local others = (now - clock_then) - (cpu_now - cpu_then)
  clock_then, cpu_then = now, cpu_now
  return others > 0 and others or 0
end

local function look()
  local now = clock()
  state.looks = state.looks + 1
  if state.untimed then
    state.untimed = false
    started = now
    deadline = now + limit
    return
  end
  if now < deadline and not expired then return end
  if not expired then
    started = started + compare(now)
    deadline = started + limit
    if now < deadline then return end
  end
  -- From here on not one more instruction: not in a handler, not behind a pcall.
  expired = true
  sethook(look, "", 1)
  error(TOO_LONG, 0)
end

watch.look = look

local function steps()
  return careful and (interval + NUL_FACTOR - 1) // NUL_FACTOR or interval
end

-- A thread that runs `body`, watched every so many instructions.
function watch.thread(body)
  local thread = native.create(body)
  sethook(thread, look, "", steps())
  expired, given_up = false, false
  return thread
end

-- How many instructions may pass between two looks at the clock, from now on.
function watch.every(count, thread)
  if count ~= interval then
    interval = count
    if thread then sethook(thread, look, "", steps()) end
  end
end

-- The script may hold strings with NULs in them: look more often. Called by what it calls.
function watch.closely()
  if not careful then
    careful = true
    local _, is_main = native.running()
    if not is_main and not expired then sethook(look, "", steps()) end
  end
end

-- A run begins; its first call has used up `spent` already. To be said before anything runs that is
-- watched, or the last run's deadline ends it.
function watch.start(now, cpu_now, spent, shorter)
  clock_then, cpu_then = now, cpu_now
  limit = shorter or timeout
  started = now - spent
  deadline = started + limit
  state.looks, state.untimed, state.protected = 0, false, 0
end

-- The next call of the run begins.
function watch.begin(now)
  if now - clock_then > limit / 2 then compare(now) end
  started = now
  deadline = started + limit
  state.looks, state.untimed = 0, false
end

-- When the call that is running began, as far as it is known.
function watch.started()
  return started
end

function watch.has_expired()
  return expired
end

-- Whether a call that has expired was given less than its time.
function watch.was_hurried()
  return limit < timeout
end

-- The call has failed, whatever it still says.
function watch.give_up()
  given_up = true
end

function watch.is_over()
  return expired or given_up
end

return watch
