-- Loads one script, and runs it over batches of calls.
--
-- A batch is walked inside one watched thread, so a call that succeeds costs neither a pcall nor a
-- thread of its own. One that fails ends the thread, and with it the run.

local native, parts = ...
local resume, yield, clock, type = native.resume, native.yield, native.clock, native.type
local unpack, rep, sub = native.string.unpack, native.string.rep, native.string.sub
local concat, find, format = native.concat, native.string.find, native.string.format
local gsub = native.string.gsub
local watch, views, histogram, config = parts.watch, parts.views, parts.histogram, parts.config
local settings, environment = parts.settings, parts.environment
local show, begin, add = views.show, watch.begin, histogram.add
local read_headers, state = parts.outline, watch.state

local name, queue = settings.name, settings.queue
local is_failure = name == "on_failure"
local encode = parts.results[name]

local FAILED = "\4"
-- Small calls that are timed together.
local GROUP_MAX = 16
local LINES_BYTES_MAX = 32768
local MESSAGE_BYTES_MAX = 500
local LEVELS_MAX = 20
local OUT_OF_MEMORY = "not enough memory"
local INTERRUPTED = "interrupted"

-- The script's function, once it is loaded.
local hook
local thread
-- The lines of the run, and how many there are.
local lines, done, size = {}, 0, 0
-- Calls since the clock was read, and when that was.
local group, group_at = 0, 0

local lengths_form = "<" .. rep("I4", 64)

-- How long the calls of a chunk are, and behind them where the first one begins.
local function read_lengths(slice, at, count)
  local wanted = count == 64 and lengths_form or "<" .. rep("I4", count)
  return { unpack(wanted, slice, at) }
end

local message, fields = views.message, views.fields
fields.queue = queue
-- The headers that are shown.
local showing

-- Headers that were read lately; messages of a queue are mostly alike. Scripts can't change them.
local KNOWN_MAX, KNOWN_BYTES_MAX = 64, 128
local known, known_count = {}, 0

local function learn(text)
  local headers = read_headers(text)
  if #text <= KNOWN_BYTES_MAX then
    if known_count >= KNOWN_MAX then known, known_count = {}, 0 end
    known[text], known_count = headers, known_count + 1
  end
  return headers
end

-- How an outline of a length is unpacked.
local FORMS_MAX = 1000
local forms, forms_count = {}, 0

local function form_of(length)
  if forms_count >= FORMS_MAX then forms, forms_count = {}, 0 end
  local form = "<I4c" .. length - 4
  forms[length], forms_count = form, forms_count + 1
  return form
end

-- A delivery that failed; what the hook gets besides the message.
local function read_failure(slice, at, length)
  local over = at + length
  local attempts, id, problem, _
  attempts, id, problem, _, at = unpack("<I4s4s4I4", slice, at)
  if find(id, "\0", 1, true) or find(problem, "\0", 1, true) then watch.closely() end
  show(read_headers(sub(slice, at, over - 1)))
  fields.id, fields.attempts, fields.error = id, attempts, problem
  return problem, attempts
end

-- So many calls have been made since the clock was read last. A long one is counted by itself, others
-- as long as they took on average.
local function close_group(now, calls)
  local began = watch.started()
  if state.looks > 1 and calls > 1 and began > group_at then
    add((began - group_at) / (calls - 1), calls - 1)
    add(now - began, 1)
  else
    add((now - group_at) / calls, calls)
  end
  group, group_at = 0, now
end

-- The calls of one chunk from the `skip`th on; where the next chunk begins, or nil to stop.
local function run_chunk(slice, at, skip, stop)
  local count
  count, at = unpack("<I2", slice, at)
  local lengths = read_lengths(slice, at, count)
  at = lengths[count + 1]
  for index = 1, skip do at = at + lengths[index] end
  for index = skip + 1, count do
    local length = lengths[index]
    local problem, attempts
    if is_failure then
      problem, attempts = read_failure(slice, at, length)
    else
      -- For each message that arrives: worth a few calls less.
      local payload_size, text = unpack(forms[length] or form_of(length), slice, at)
      local headers = known[text] or learn(text)
      if headers ~= showing then
        show(headers)
        showing = headers
      end
      fields.payload_size = payload_size
    end
    at = at + length
    local result = hook(message, problem, attempts)
    if type(result) ~= "table" then
      done = done + 1
      lines[done] = FAILED .. "bad_results\1it returned " .. type(result) .. ", not a table"
      close_group(clock(), group + 1)
      return nil
    end
    local line = encode(result)
    done = done + 1
    lines[done] = line
    size = size + #line
    group = group + 1
    if group == GROUP_MAX or state.looks > 1 or size > LINES_BYTES_MAX then
      local now = clock()
      close_group(now, group)
      if now >= stop or size > LINES_BYTES_MAX then return nil end
      begin(now)
    else
      state.looks, state.untimed = 0, true
    end
  end
  return at
end

-- Walks batches for ever; each resume brings one.
local function walk(slice, skip, stop)
  while true do
    local at = 1
    size = 0
    while at and at <= #slice do
      at = run_chunk(slice, at, skip, stop)
      skip = 0
    end
    if group > 0 then close_group(clock(), group) end
    slice, skip, stop = yield()
  end
end

-- In one line: lines are what parts one call's answer from the next.
local function plain(text)
  return (gsub(sub(text, 1, MESSAGE_BYTES_MAX), "%c", " "))
end

-- Where the script was when a thread died of something that does not say so itself.
local function place(ended)
  for level = 0, LEVELS_MAX do
    local info = native.getinfo(ended, level, "Sl")
    if not info then return "" end
    if info.short_src == name and info.currentline > 0 then
      return format("%s:%d: ", name, info.currentline)
    end
  end
  return ""
end

-- How a thread failed, and what it said.
local function failure(problem, ended)
  if problem == OUT_OF_MEMORY then return "out_of_memory\1" .. OUT_OF_MEMORY end
  if watch.has_expired() then
    if watch.was_hurried() then return INTERRUPTED end
    return "timeouts\1" .. place(ended) .. watch.too_long
  end
  if type(problem) ~= "string" then
    return "errors\1" .. place(ended) .. "the error is a " .. type(problem) .. " value"
  end
  problem = plain(problem)
  -- Our own Lua has no lines to tell.
  if find(problem, "?:-1: ", 1, true) == 1 then problem = sub(problem, 7) end
  if find(problem, name .. ":", 1, true) == 1 then return "errors\1" .. problem end
  return "errors\1" .. place(ended) .. problem
end

local runner = {}

-- Compile and run the script; what went wrong, or nil.
function runner.load(source, cpu_now, every)
  local now = clock()
  watch.start(now, cpu_now, 0)
  watch.every(every)
  local chunk, problem = native.load(source, "=" .. name, "t", environment)
  if not chunk then return "errors\1" .. plain(problem) end
  if find(source, "\0", 1, true) or find(source, "\\0", 1, true)
    or find(source, "\\x00", 1, true) or find(source, "\\u{0", 1, true) then
    watch.closely()
  end
  local loading, ok = watch.thread(chunk), nil
  ok, problem = resume(loading)
  if not ok then return failure(problem, loading) end
  hook = native.rawget(environment, name)
  if type(hook) ~= "function" then return "errors\1it defines no function " .. name end
  native.collectgarbage()
  return nil
end

-- Run a batch; the lines, after one that says how much of its time a failed call took, and how long
-- the calls took. `limit`: the time for each call, where that is less than its time limit.
function runner.run(slice, skip, budget, limit, spent, cpu_now, every, is_stale)
  if is_stale then config.forget() end
  watch.every(every, thread)
  -- It is kept only if it comes back: whatever fails here, a dead thread is not resumed.
  local walking = thread or watch.thread(walk)
  thread = nil
  local now = clock()
  watch.start(now, cpu_now, spent, limit)
  done, group, group_at = 0, 0, now
  local ok, problem = resume(walking, slice, skip, now + budget)
  local took = 0
  if ok then
    thread = walking
  else
    -- There may be no room left to say so.
    if problem == OUT_OF_MEMORY then walking = nil end
    native.collectgarbage()
    -- To clear away what the call has left is a part of its time.
    local ended = clock()
    took = ended - native.math.max(group_at, watch.started())
    close_group(ended, group + 1)
    done = done + 1
    lines[done] = FAILED .. failure(problem, walking)
  end
  return format("%.6f", took) .. histogram.take() .. "\n" .. concat(lines, "\n", 1, done)
end

return runner
