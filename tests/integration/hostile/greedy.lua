-- Bodies of on_enqueue that want more memory than there is, or more of the stack.

--- table
local t = {} while true do t[#t + 1] = {} end

--- table of numbers
local t = {} for i = 1, 1e9 do t[i] = i end

--- string doubling
local s = 'x' while true do s = s .. s end

--- rep bomb
return ('x'):rep(1 << 40)

--- rep of rep
return ('x'):rep(1 << 20):rep(1 << 20)

--- rep separator bomb
return ('x'):rep(1 << 30, ('y'):rep(1 << 10))

--- concat bomb
local t = {} for i = 1, 1000 do t[i] = ('x'):rep(100000) end return table.concat(t)

--- gsub bomb
return ('x'):rep(1000):gsub('x', ('y'):rep(100000))

--- gsub empty bomb
return ('x'):rep(1000):gsub('', ('y'):rep(100000))

--- format bomb
local s = ('x'):rep(300000) return ('%s%s%s%s%s%s%s%s'):format(s, s, s, s, s, s, s, s)

--- concat operator bomb
local s = ('x'):rep(300000) return s .. s .. s .. s .. s .. s .. s .. s

--- closures
local t = {} while true do t[#t + 1] = function() return t end end

--- recursion
local function f() return 1 + f() end return f()

--- recursion through pcall
local function f() return 1 + select(2, pcall(f)) end return f()

--- recursion through index
local t = setmetatable({}, {})
getmetatable(t).__index = function(t, k) return t[k .. 'x'] end
return t.x

--- recursion through tostring
local t
t = setmetatable({}, {__tostring = function() return tostring(t) end})
return tostring(t)

--- recursion through gsub
local function f(s) return s:gsub('.', f) end
return f('x')

--- recursion through sort
local function f() table.sort({1, 2}, f) return true end
return f()

--- recursion through concat
local m = {}
m.__concat = function(a, b) return a .. b end
return setmetatable({}, m) .. setmetatable({}, m)

--- recursion through close
local function f()
    local x <close> = setmetatable({}, {__close = f})
end
f()

--- recursion with an error handler
local function f() error(setmetatable({}, {__tostring = f})) end
while true do pcall(f) tostring(setmetatable({}, {__tostring = f})) end

--- many values
local t = {} for i = 1, 4000 do t[i] = i end local function f(...) return f(..., table.unpack(t)) end return f(table.unpack(t))

--- many varargs
local function f(...) return f(1, 2, 3, 4, ...) end return f()

--- globals
all = all or {} for i = 1, 3000 do all[#all + 1] = {i} end return {}

--- globals of strings
all = all or {} all[#all + 1] = ('x'):rep(200000) return {}

--- pcall of memory
while true do pcall(function() local t = {} while true do t[#t + 1] = {} end end) end

--- pack
while true do local t = table.pack(table.unpack({}, 1, 4000)) end

--- captures
return ('x'):rep(100):match(('(x)'):rep(40))

--- gmatch kept
local t = {} for i = 1, 1e9 do t[i] = ('x'):gmatch('x') end

--- config kept
for i = 1, 1e9 do fila.get('key' .. i) end
