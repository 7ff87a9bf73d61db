-- What a hook returned, as one line of bytes: fields between \1, in a fixed order.
--
-- Read with raw access alone, inside the limits: a result may be as hostile as the script. Ranges are
-- checked where the line is read; here values only get a bounded length and a harmless form.

local native, parts = ...
local type, find, tonumber, math_type = native.type, native.string.find, native.tonumber, native.math_type
local raw_get, raw_len, metatable_of = native.rawget, native.rawlen, native.metatable_of
local floor, ceil, tointeger, concat = native.math.floor, native.math.ceil, native.tointeger, native.concat
local format, huge = native.string.format, native.math.huge
local key_bytes_max, keys_max = parts.settings.key_bytes_max, parts.settings.throttle_keys_max

-- Said, but no key or number can be made of it.
local UNUSABLE = "\2"
-- There was more than there may be.
local SURPLUS = "\3"
local LIST_MAX = 1000
local FAR = 1 << 53
local KNOWN_MAX = 128
local KNOWN_BYTES_MAX = 64

local digits = {}
for value = 0, 100 do digits[value] = format("%d", value) end

-- Keys that were looked at lately; tenants come again and again.
local known, known_count = {}, 0
-- Lines of results that name nothing but a key, for those of the keys.
local bare_lines = {}

local function key(value)
  if type(value) == "number" then
    if value ~= value or value == huge or value == -huge then return UNUSABLE end
    return native.tostring(value)
  elseif type(value) ~= "string" then
    return ""
  elseif value == "" or #value > key_bytes_max or find(value, "[%c\127]") then
    return UNUSABLE
  end
  if #value <= KNOWN_BYTES_MAX then
    if known_count >= KNOWN_MAX then known, known_count, bare_lines = {}, 0, {} end
    known[value], known_count = value, known_count + 1
  end
  return value
end

local function number(value)
  local kind = type(value)
  if kind == "string" then
    if #value > KNOWN_BYTES_MAX then return "" end
    value = tonumber(value)
    if value == nil then return "" end
  elseif kind ~= "number" then
    return ""
  end
  if value ~= value then return UNUSABLE end
  if math_type(value) == "float" then
    if value >= FAR then return format("%d", FAR) end
    if value <= -FAR then return format("%d", -FAR) end
    value = tointeger(value < 0 and ceil(value) or floor(value))
  end
  return digits[value] or format("%d", value)
end

local function keys(list)
  if type(list) ~= "table" then return "" end
  local line, count, seen = { "+" }, 1, {}
  local size, surplus = raw_len(list), false
  if size > LIST_MAX then size, surplus = LIST_MAX, true end
  for index = 1, size do
    local value = raw_get(list, index)
    local text = value == nil and "" or known[value] or key(value)
    if text ~= "" and not seen[text] then
      if count > keys_max then
        surplus = true
        break
      end
      seen[text] = true
      count = count + 1
      line[count] = text
    end
  end
  if surplus then line[count + 1] = SURPLUS end
  return concat(line, "\1")
end

-- The list of one key that most scripts return.
local function few(list)
  if type(list) == "table" and raw_len(list) == 1 then
    local text = known[raw_get(list, 1)]
    if text then return "+\1" .. text end
  end
  return keys(list)
end

local function bare(result)
  local copy = {}
  for index = 1, #parts.settings.fields do
    local field = parts.settings.fields[index]
    copy[field] = raw_get(result, field)
  end
  return copy
end

local function word(value)
  if value == "retry" or value == "dlq" then return value end
  return ""
end

local results = {}

function results.on_enqueue(result)
  if metatable_of(result) then result = bare(result) end
  local name, weight, list = result.fairness_key, result.weight, result.throttle_keys
  local cost, priority, delay_ms = result.cost, result.priority, result.delay_ms
  local text = name == nil and "" or known[name] or key(name)
  if weight == nil and list == nil and cost == nil and priority == nil and delay_ms == nil then
    -- What most scripts say: whose message it is.
    local line = bare_lines[text]
    if line then return line end
    line = text .. "\1\1\1\1\1"
    if known[text] then bare_lines[text] = line end
    return line
  end
  return text
    .. "\1" .. (weight == nil and "" or digits[weight] or number(weight))
    .. "\1" .. (cost == nil and "" or digits[cost] or number(cost))
    .. "\1" .. (priority == nil and "" or digits[priority] or number(priority))
    .. "\1" .. (delay_ms == nil and "" or digits[delay_ms] or number(delay_ms))
    .. "\1" .. (list == nil and "" or few(list))
end

function results.on_failure(result)
  if metatable_of(result) then result = bare(result) end
  local name, weight, list = result.fairness_key, result.weight, result.throttle_keys
  local priority, delay_ms = result.priority, result.delay_ms
  return (name == nil and "" or known[name] or key(name))
    .. "\1" .. (weight == nil and "" or digits[weight] or number(weight))
    .. "\1" .. word(result.action)
    .. "\1" .. (priority == nil and "" or digits[priority] or number(priority))
    .. "\1" .. (delay_ms == nil and "" or digits[delay_ms] or number(delay_ms))
    .. "\1" .. (list == nil and "" or few(list))
end

return results
