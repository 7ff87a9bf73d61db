-- The table library as scripts see it.
--
-- Lists are walked here, instruction by instruction, so that the watch sees it: Lua's own functions
-- believe a __len that says a billion, and ask nobody.

local native, parts = ...
local type, error, math_type = native.type, native.error, native.math_type
local table = native.table

local SHORT = 200
local VALUES_MAX = 4000

local tables = { pack = table.pack }

local function check_table(list, name)
  if type(list) ~= "table" then
    error("bad argument #1 to '" .. name .. "' (table expected, got " .. type(list) .. ")", 3)
  end
end

local function integer(value, position, name, default)
  if value == nil and default ~= nil then return default end
  local number = native.tointeger(native.tonumber(value))
  if number == nil then
    local problem = "number expected, got " .. type(value)
    if native.tonumber(value) then problem = "number has no integer representation" end
    error("bad argument #" .. position .. " to '" .. name .. "' (" .. problem .. ")", 3)
  end
  return number
end

local function length(list)
  local count = #list
  if math_type(count) ~= "integer" then error("object length is not an integer", 3) end
  return count
end

function tables.insert(list, ...)
  check_table(list, "insert")
  local count = length(list)
  local given = native.select("#", ...)
  if given == 1 then
    list[count + 1] = (...)
    return
  elseif given ~= 2 then
    error("wrong number of arguments to 'insert'", 2)
  end
  local position, value = ...
  position = integer(position, 2, "insert")
  if position < 1 or position > count + 1 then
    error("bad argument #2 to 'insert' (position out of bounds)", 2)
  end
  for index = count, position, -1 do list[index + 1] = list[index] end
  list[position] = value
end

function tables.remove(list, position)
  check_table(list, "remove")
  local count = length(list)
  position = integer(position, 2, "remove", count)
  if position ~= count and (position < 1 or position > count + 1) then
    error("bad argument #2 to 'remove' (position out of bounds)", 2)
  end
  local removed = list[position]
  for index = position, count - 1 do list[index] = list[index + 1] end
  list[position < count and count or position] = nil
  return removed
end

local function piece(list, index)
  local value = list[index]
  local kind = type(value)
  if kind ~= "string" and kind ~= "number" then
    error("invalid value (" .. kind .. ") at index " .. index .. " in table for 'concat'", 3)
  end
  return value
end

function tables.concat(list, separator, first, last)
  check_table(list, "concat")
  if separator == nil then separator = "" end
  if type(separator) ~= "string" and type(separator) ~= "number" then
    error("bad argument #2 to 'concat' (string expected, got " .. type(separator) .. ")", 2)
  end
  first = integer(first, 3, "concat", 1)
  last = last == nil and length(list) or integer(last, 4, "concat")
  if first > last then return "" end
  -- In blocks, each of them copied without a look at the clock.
  local blocks, block, size = {}, {}, 0
  local index = first
  while true do
    size = size + 1
    block[size] = piece(list, index)
    if size == SHORT or index == last then
      blocks[#blocks + 1] = table.concat(block, separator, 1, size)
      size = 0
      if index == last then break end
    end
    index = index + 1
  end
  return #blocks == 1 and blocks[1] or table.concat(blocks, separator)
end

function tables.unpack(list, first, last)
  first = integer(first, 2, "unpack", 1)
  last = last == nil and #list or integer(last, 3, "unpack")
  if last >= first and (last - first < 0 or last - first >= VALUES_MAX) then
    error("too many results to unpack", 2)
  end
  return table.unpack(list, first, last)
end

function tables.move(from, first, last, target, to)
  check_table(from, "move")
  first, last = integer(first, 2, "move"), integer(last, 3, "move")
  target = integer(target, 4, "move")
  to = to == nil and from or to
  if type(to) ~= "table" then
    error("bad argument #5 to 'move' (table expected, got " .. type(to) .. ")", 2)
  end
  if last < first then return to end
  if not (first > 0 or last < native.maxinteger + first) then
    error("bad argument #3 to 'move' (too many elements to move)", 2)
  elseif target > native.maxinteger - (last - first + 1) + 1 then
    error("bad argument #4 to 'move' (destination wrap around)", 2)
  end
  if target > last or target <= first or to ~= from then
    for offset = 0, last - first do to[target + offset] = from[first + offset] end
  else
    for offset = last - first, 0, -1 do to[target + offset] = from[first + offset] end
  end
  return to
end

local function ascending(left, right)
  return left < right
end

-- Always with a comparison in Lua: one that is Lua's own is not seen by the watch.
function tables.sort(list, before)
  check_table(list, "sort")
  if before ~= nil and type(before) ~= "function" then
    error("bad argument #2 to 'sort' (function expected, got " .. type(before) .. ")", 2)
  end
  table.sort(list, before or ascending)
end

return tables
