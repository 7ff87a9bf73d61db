-- Loads one script, and runs it over batches of calls.
--
-- A batch is walked inside one watched thread, so a call that succeeds costs neither a pcall nor a
-- thread of its own. One that fails ends the thread, and with it the run.

local native, parts = ...
local resume, yield, clock, type = native.resume, native.yield, native.clock, native.type
local unpack, rep, sub = native.string.unpack, native.string.rep, native.string.sub
local concat, find, format = native.concat, native.string.find, native.string.format
local watch, headers, histogram, config = parts.watch, parts.headers, parts.histogram, parts.config
local settings, environment = parts.settings, parts.environment
local proxy, show, begin, add = headers.proxy, headers.show, watch.begin, histogram.add

local name, queue = settings.name, settings.queue
local is_failure = name == "on_failure"
local encode = parts.results[name]

local FAILED = "\4"
local LINES_BYTES_MAX = 32768
local MESSAGE_BYTES_MAX = 500
local LEVELS_MAX = 20
local OUT_OF_MEMORY = "not enough memory"

-- The script's function, once it is loaded.
local hook
local thread
-- The lines of the run, and how many there are.
local lines, done, size = {}, 0, 0
local called_at = 0

-- Strings as Python packs them: ended by NULs, or after their length where they hold NULs.
local ENDED, MEASURED = { [0] = "" }, { [0] = "<" }

local function form(measured, count)
  local forms = measured and MEASURED or ENDED
  local found = forms[count]
  if not found then
    found = measured and "<" .. rep("s4", count) or rep("z", count)
    forms[count] = found
  end
  return found
end

local function read_headers(slice, at, count, measured)
  local shown = {}
  while count >= 4 do
    local a, b, c, d, e, f, g, h
    a, b, c, d, e, f, g, h, at = unpack(form(measured, 8), slice, at)
    shown[a], shown[c], shown[e], shown[g] = b, d, f, h
    count = count - 4
  end
  for _ = 1, count do
    local header, value
    header, value, at = unpack(form(measured, 2), slice, at)
    shown[header] = value
  end
  return shown, at
end

-- One message: its headers are shown, the rest is what the hook gets.
local function enqueue_message(slice, at, header_count, measured, payload_size)
  local shown
  if header_count == 1 and not measured then
    local header, value
    header, value, at = unpack("zz", slice, at)
    shown = { [header] = value }
  else
    shown, at = read_headers(slice, at, header_count, measured)
  end
  show(shown)
  return at, { headers = proxy, payload_size = payload_size, queue = queue }
end

local function failure_message(slice, at, header_count, measured, attempts)
  local id, problem, shown
  id, problem, at = unpack(form(measured, 2), slice, at)
  shown, at = read_headers(slice, at, header_count, measured)
  show(shown)
  return at, { headers = proxy, id = id, attempts = attempts, queue = queue, error = problem },
    problem, attempts
end

local read = is_failure and failure_message or enqueue_message

local function skip_strings(slice, at, count, measured)
  for _ = 1, count do
    local _text
    _text, at = unpack(form(measured, 1), slice, at)
  end
  return at
end

local HEADS_MAX = 64
local heads_form = "<" .. rep("I4I4", HEADS_MAX)

local function read_heads(slice, at, count)
  local wanted = count == HEADS_MAX and heads_form or "<" .. rep("I4I4", count)
  return { unpack(wanted, slice, at) }
end

local LEADING = is_failure and 2 or 0

-- The calls of one chunk from the `skip`th on; where the next chunk begins, or nil to stop.
local function run_chunk(slice, at, skip, now, stop)
  local count, measured
  count, measured, at = unpack("<I2I1", slice, at)
  measured = measured == 1
  if measured then watch.closely() end
  local heads = read_heads(slice, at, count)
  at = heads[2 * count + 1]
  for index = 1, skip do
    at = skip_strings(slice, at, LEADING + 2 * heads[2 * index - 1], measured)
  end
  for index = skip + 1, count do
    local msg, second, third
    at, msg, second, third = read(slice, at, heads[2 * index - 1], measured, heads[2 * index])
    local result = hook(msg, second, third)
    if type(result) ~= "table" then
      done = done + 1
      lines[done] = FAILED .. "bad_results\1it returned " .. type(result) .. ", not a table"
      add(clock() - now)
      return nil
    end
    local line = encode(result)
    done = done + 1
    lines[done] = line
    size = size + #line
    local later = clock()
    add(later - now)
    now = later
    called_at = now
    if now >= stop or size > LINES_BYTES_MAX then return nil end
    begin(now)
  end
  return at, now
end

-- Walks batches for ever; each resume brings one.
local function walk(slice, skip, now, stop)
  while true do
    local at = 1
    size = 0
    while at and at <= #slice do
      at, now = run_chunk(slice, at, skip, now, stop)
      skip = 0
    end
    slice, skip, now, stop = yield()
  end
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
  if watch.has_expired() then return "timeouts\1" .. place(ended) .. watch.too_long end
  if problem == OUT_OF_MEMORY then return "out_of_memory\1" .. OUT_OF_MEMORY end
  if type(problem) ~= "string" then
    return "errors\1" .. place(ended) .. "the error is a " .. type(problem) .. " value"
  end
  problem = sub(problem, 1, MESSAGE_BYTES_MAX)
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
  if not chunk then return "errors\1" .. problem end
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
-- the calls took.
function runner.run(slice, skip, budget, spent, cpu_now, every, is_stale)
  if is_stale then config.forget() end
  watch.every(every, thread)
  if not thread then thread = watch.thread(walk) end
  local now = clock()
  watch.start(now, cpu_now, spent)
  done, called_at = 0, now
  local ok, problem = resume(thread, slice, skip, now, now + budget)
  local took = 0
  if not ok then
    took = clock() - called_at
    add(took)
    done = done + 1
    lines[done] = FAILED .. failure(problem, thread)
    thread = nil
    native.collectgarbage()
  end
  return format("%.6f", took) .. histogram.take() .. "\n" .. concat(lines, "\n", 1, done)
end

return runner
