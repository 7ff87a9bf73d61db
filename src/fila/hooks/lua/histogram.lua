-- How long calls took, counted in buckets: eight to each doubling, of microseconds.

local native = ...
local format, floor, log = native.string.format, native.math.floor, native.math.log

local histogram = {}
local counts = {}
-- The bucket of each small number of microseconds, which is nearly all of them.
local SMALL_MAX = 255
local small = {}

local function bucket(micros)
  if micros < 1 then return 0 end
  return floor(log(micros, 2) * 8) + 1
end

for micros = 0, SMALL_MAX do small[micros] = bucket(micros) end

-- So many calls of so long each. os.clock counts whole microseconds.
function histogram.add(seconds, calls)
  local micros = seconds * 1000000 + 0.5
  micros = micros - micros % 1
  local place = small[micros] or bucket(micros)
  counts[place] = (counts[place] or 0) + calls
end

-- What was counted since the last time, as text.
function histogram.take()
  local line = ""
  for place, count in native.next, counts do line = line .. format(" %d:%d", place, count) end
  counts = {}
  return line
end

return histogram
