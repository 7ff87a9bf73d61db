-- Lua's own functions by the names that the other parts use; afterwards there are no globals.

local native = {
  assert = assert, collectgarbage = collectgarbage, error = error, ipairs = ipairs, load = load,
  next = next, pcall = pcall, rawequal = rawequal, rawget = rawget, rawlen = rawlen, rawset = rawset,
  select = select, setmetatable = setmetatable, tonumber = tonumber, tostring = tostring,
  type = type, version = _VERSION,
  clock = os.clock, create = coroutine.create, resume = coroutine.resume,
  running = coroutine.running, yield = coroutine.yield, metatable_of = debug.getmetatable,
  sethook = debug.sethook, getinfo = debug.getinfo, concat = table.concat, math_type = math.type, tointeger = math.tointeger,
  maxinteger = math.maxinteger,
  string = {}, table = {}, math = {}, utf8 = {},
}

-- Copies: what scripts see of these libraries are other tables.
for _, library in ipairs({ "string", "table", "math", "utf8" }) do
  for name, value in next, _G[library] do native[library][name] = value end
end

local globals = _G
for name in next, globals do globals[name] = nil end

return native
