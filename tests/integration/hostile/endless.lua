-- Bodies of on_enqueue that run until somebody stops them. A line with three dashes names the next.

--- loop
while true do end

--- repeat
repeat until false

--- goto
::again:: goto again

--- for
for i = 1, math.huge do end

--- recursion by tail call
local function f() return f() end f()

--- pcall
while true do pcall(function() while true do end end) end

--- pcall in pcall
local function f() while true do pcall(f) end end
f()

--- pcall deep
local function f(n) if n > 0 then pcall(f, n - 1) end while true do end end
f(150)

--- pcall of error
while true do pcall(error, nil) end

--- error objects
while true do pcall(error, setmetatable({}, {__tostring = function() while true do end end})) end

--- tostring
tostring(setmetatable({}, {__tostring = function() while true do end end}))

--- format tostring
string.format('%s', setmetatable({}, {__tostring = function() while true do end end}))

--- index
local t = setmetatable({}, {__index = function() while true do end end}) return t.x

--- newindex
setmetatable({}, {__newindex = function() while true do end end}).x = 1

--- call
setmetatable({}, {__call = function() while true do end end})()

--- eq
local m = {__eq = function() while true do end end}
return setmetatable({}, m) == setmetatable({}, m)

--- lt
return setmetatable({}, {__lt = function() while true do end end}) < 1

--- len
return #setmetatable({}, {__len = function() while true do end end})

--- concat event
return 'a' .. setmetatable({}, {__concat = function() while true do end end})

--- unm
return -setmetatable({}, {__unm = function() while true do end end})

--- pairs
for _ in pairs(setmetatable({}, {__pairs = function() while true do end end})) do end

--- pairs for ever
for _ in pairs(setmetatable({}, {__pairs = function(t) return function() return 1 end, t end})) do end

--- ipairs
for _ in ipairs(setmetatable({}, {__index = function() return 1 end})) do end

--- spinning where the stack ends
local deep
deep = setmetatable({}, {__index = function(t, k) local x = t[k] while true do end end})
while true do pcall(function() return deep.x end) end

--- spinning at every depth
local function spin() for i = 1, 1000 do end end
local t
t = setmetatable({}, {__index = function(_, k)
    pcall(function() return t[k] end)
    while true do pcall(spin) end
end})
return t.x

--- overflow closed over
local t
local guard = setmetatable({}, {__close = function() error('x', 0) end})
t = setmetatable({}, {__index = function(_, k)
    local c <close> = guard
    local x = t[k]
    while true do end
end})
while true do pcall(function() local c <close> = guard return t.x end) end

--- close
local x <close> = setmetatable({}, {__close = function() while true do end end})

--- close in pcall
while true do
    pcall(function()
        local x <close> = setmetatable({}, {__close = function() while true do end end})
        error('x')
    end)
end

--- close nested
local function f(n)
    local x <close> = setmetatable({}, {__close = function() while true do end end})
    if n > 0 then f(n - 1) end
    while true do end
end
f(100)

--- close in for
local guard = setmetatable({}, {__close = function() while true do end end})
for _ in function() return 1 end, nil, nil, guard do end

--- sort
table.sort({3, 2, 1}, function() while true do end end)

--- sort inconsistent
local t = {}
for i = 1, 200 do t[i] = i end
while true do pcall(table.sort, t, function() return true end) end

--- gsub callback
(('x'):rep(10)):gsub('x', function() while true do end end)

--- gsub table
(('x'):rep(10)):gsub('x', setmetatable({}, {__index = function() while true do end end}))

--- gsub of gsub
local function f() return (('x'):rep(10):gsub('x', f)) end
while true do pcall(f) end

--- gmatch
while true do for _ in ('x'):gmatch('x') do end end

--- backtracking
return ('a'):rep(50):find('a-a-a-a-a-a-b')

--- backtracking greedy
return ('a'):rep(100):match('a*a*a*a*a*a*b')

--- backtracking optional
return ('a'):rep(60):find(('a?'):rep(30) .. ('a'):rep(61))

--- backtracking gsub
return ('a'):rep(50):gsub('a-a-a-a-a-a-b', '')

--- backtracking gmatch
for x in ('a'):rep(50):gmatch('a-a-a-a-a-a-b') do end

--- backtracking gmatch caret
for x in ('^'):rep(150):gmatch('^*^*^*^*b') do end

--- backtracking captures
return ('a'):rep(120):find('(a*)(a*)(a*)%1%2%3b')

--- balance
return ('('):rep(20000):find('%b()')

--- balance again
while true do local x = ('('):rep(20000):find('%b()') end

--- frontier
while true do local x = ('a'):rep(30000):find('%f[b]a*%f[c]') end

--- big set
while true do local x = ('a'):rep(20000):find('[' .. ('b-c'):rep(5000) .. ']') end

--- plain find
while true do local x = ('a'):rep(100000):find(('a'):rep(50000) .. 'b', 1, true) end

--- plain find by pattern
while true do local x = ('a'):rep(100000):find(('a'):rep(50000) .. 'b') end

--- rep of nothing
while true do local x = string.rep('', 1e9) end

--- rep of nothing once
local x = string.rep('', 1e15 // 1 | 0) while true do end

--- rep
while true do local x = ('ab'):rep(100000) end

--- rep separator
while true do local x = ('a'):rep(50000, 'b') end

--- upper
local s = ('a'):rep(300000) while true do local x = s:upper() end

--- reverse
local s = ('a'):rep(300000) while true do local x = s:reverse() end

--- byte
local s = ('a'):rep(20000) while true do local x = #{s:byte(1, -1)} end

--- char
local t = {} for i = 1, 3000 do t[i] = 65 end while true do local x = string.char(table.unpack(t)) end

--- format
local s = ('a'):rep(200000) while true do local x = ('%s%q'):format(s, s) end

--- format width
while true do local x = ('%99.99f'):rep(30):format(table.unpack({}, 1, 0)) end

--- utf8 len
local s = ('ä'):rep(30000) while true do local x = utf8.len(s) end

--- utf8 codes
local s = ('ä'):rep(30000) while true do for _ in utf8.codes(s) do end end

--- utf8 offset
local s = ('ä'):rep(30000) while true do local x = utf8.offset(s, 30000) end

--- utf8 codepoint
local s = ('a'):rep(3000) while true do local x = {utf8.codepoint(s, 1, -1)} end

--- insert at the front
local t = {} while true do table.insert(t, 1, 1) end

--- insert by len
table.insert(setmetatable({}, {__len = function() return 1e8 // 1 | 0 end}), 1, 1)

--- remove by len
table.remove(setmetatable({}, {__len = function() return 1e8 // 1 | 0 end}), 1)

--- concat by len
return table.concat(setmetatable({}, {__len = function() return 1e8 // 1 | 0 end, __index = function() return '' end}))

--- unpack by len
while true do pcall(table.unpack, setmetatable({}, {__len = function() return 4000 end})) end

--- move
table.move({}, 1, 100000000, 2)

--- move to another
table.move({}, 1, 100000000, 2, {})

--- sort by len
table.sort(setmetatable({}, {__len = function() return 1e8 // 1 | 0 end, __index = function() return 1 end, __newindex = function() end}))

--- concat
local t = {} for i = 1, 15000 do t[i] = 'x' end while true do local x = table.concat(t) end

--- select
local t = {} for i = 1, 3000 do t[i] = i end while true do local x = select(1, table.unpack(t)) end

--- next over a hole
local t = {}
for i = 1, 30000 do t[i] = i end
for i = 1, 30000 do t[i] = nil end
while true do local x = next(t) end

--- rehash
local t = {}
for i = 1, 30000 do t[i] = i end
local i = 0
while true do i = i + 1 t['k' .. i] = 1 t['k' .. i] = nil end

--- collisions
local t, size = {}, 8192
for i = 0, size - 1 do t[i * 8191 + 100000] = true end
while true do local x = t[8192 * 8191 + 100000] end

--- metatable chain
local t = {}
for i = 1, 1900 do t = setmetatable({}, {__index = t}) end
while true do local x = t.x end

--- long strings compared
local a, b = ('a'):rep(200000) .. 'x', ('a'):rep(200000) .. 'x'
while true do local x = a == b or a < b end

--- long strings ordered
local a, b = ('a'):rep(200000) .. 'x', ('a'):rep(200000) .. 'y'
while true do local x = a < b local y = a <= b local z = a > b end

--- NULs ordered
local a, b = ('\0'):rep(200000), ('\0'):rep(200000)
while true do local x = a < b local y = a < b local z = a < b local w = a < b end

--- NULs made and ordered
local a, b = string.char(0):rep(200000), string.char(0):rep(200000)
while true do local x = a < b local y = a < b local z = a < b local w = a < b end

--- NULs doubled and ordered
local a, b = string.char(0), string.char(0)
for i = 1, 18 do a = a .. a b = b .. b end
while true do local x = a < b local y = a < b local z = a < b local w = a < b end

--- NULs formatted and ordered
local a, b = ('%c'):format(0), utf8.char(0)
for i = 1, 18 do a = a .. a b = b .. b end
while true do local x = a < b local y = a < b local z = a < b local w = a < b end

--- hashes of long strings
local a, t = ('a'):rep(200000), {}
while true do local x = t[a .. 'x'] local y = t[a .. 'y'] local z = t[a .. 'z'] end

--- numbers of long strings
local s = ('1'):rep(300000)
while true do local x = s + 1 local y = s * 2 local z = tonumber(s) end

--- concatenations
local a, b = ('a'):rep(200000), ('b'):rep(200000)
while true do local x = a .. b local y = b .. a local z = a .. b end

--- garbage at the brim
local t, i = {}, 0
local room = 1048576 - 60000
for n = 1, 8000 do t[n] = {n} end
local pad = {}
while true do
    pcall(function() pad[#pad + 1] = ('x'):rep(64 + #pad) end)
    if #pad > 40 then pad = {} end
    local f = function() return i end
    local g = function() return i end
end

--- garbage where memory ends
local t = {}
for i = 1, 8100 do t[i] = {} end
while true do
    local f = function() return t end
    local g = function() return t end
end

--- strings where memory ends
local t = {}
for i = 1, 3000 do t[i] = {} end
local s = ('x'):rep(300000)
while true do local x = s .. 'y' local y = s .. 'z' end

--- sort of long strings
local a, b, t = ('a'):rep(150000) .. 'x', ('a'):rep(150000) .. 'x', {}
for i = 1, 2000 do t[i] = i % 2 == 0 and a or b end
while true do table.sort(t) end

--- long NULs ordered
local a, b = string.char(0), string.char(0)
for i = 1, 18 do a = a .. a end
b = a .. ''
while true do
    if a < b then end if a < b then end if a < b then end if a < b then end
    if a < b then end if a < b then end if a < b then end if a < b then end
end

--- hashes of longer strings
local a, t = ('a'):rep(400000), {}
while true do local x = t[a .. 'x'] local y = t[a .. 'y'] local z = t[a .. 'z'] end

--- weak tables
local mt = {}
local first = {}
local last = first
for n = 1, 2500 do
    local t, key = setmetatable({}, mt), {}
    t[last] = key
    last = key
end
mt.__mode = 'k'
while true do local x = {} end

--- vararg
local function f(...) return f(1, ...) end
while true do pcall(f) end

--- config
while true do local x = fila.get('a' .. math.random(1000000)) end

--- headers
while true do for k, v in pairs(msg.headers) do end end

--- backoff
while true do fila.helpers.exponential_backoff(math.huge, 1, 2) end

--- result for ever
return setmetatable({}, {__index = function() while true do end end})
    .x

--- power
local x = 2 while true do x = x ^ 0.5 % 1e-300 + 1e308 end

--- coercion
while true do local x = '0x' .. ('f'):rep(20000) x = x + 0 end

--- rawset
local t = {} while true do rawset(t, {}, 1) if math.random(1000) == 1 then t = {} end end

--- time over far down in pcalls, as the fuzz found it
local t1, t2, s1, n1 = {}, {3, 1, 2}, 'text', 7
local f1, f2
f1 = function(a, b) local _ = rawlen('a-a-a-a-a-b', 1/0, nil, ('a'):rep(50)); t2 = select(-1, pcall(string.gmatch, msg.headers)); return rawequal('__mode', select(-1, pcall(f1, msg)), 'abc', ('a'):rep(20000)) end
f2 = function(a, b, ...) t1[select(-1, pcall(string.gmatch, setmetatable({}, {__index = f2, __len = f1, __call = f1, __newindex = f2})))] = f1('k'); return {a = 1} end
pcall(function() if table.unpack() then s1 = setmetatable({}, {__len = function() return 1e8 // 1 | 0 end}); for k, v in pairs(string.sub((('')[msg])['__metatable'], select(-1, pcall(string.match, math.fmod(1e308))))) do for k, v in pairs(select(-1, pcall(on_enqueue, {a = 1}))) do local _ = rawlen(setmetatable({}, {__eq = f1, __lt = f2, __concat = f1}), '%1', '%s%q%d', 0); while (setmetatable({}, {__metatable = 1}))[''] do n1 = 'k'; t2 = f2; s1 = s1 .. 'x' end end pcall(function() t2 = math.modf(-1e9, ('('):rep(2000), '%b()'); local _ = math.abs(msg.headers, setmetatable({}, {__close = f1}), t1, ('a'):rep(50)); while nil do t2 = {}; n1 = -1; s1 = s1 .. 'x' end end); end end end)
pcall(function() s1 = math.max('__metatable'); end)
pcall(function() if -1/0 then pcall(function() while select(-1, pcall(string.char, f2())) do t1 = 'a'; if {{}, {}} then s1 = 'stack overflow'; t1 = '%c'; end s1 = s1 .. 'x' end while (tostring('not enough memory', ('1'):rep(400), {a = 1}))[s1] do n1 = select(-1, pcall(math.type, math)); s1 = s1 .. 'x' end if (f1)['%c'] then  end end); end end)
pcall(function() while {1, 2, 3} do  s1 = s1 .. 'x' end end)
return {fairness_key = s1, weight = n1, throttle_keys = t1, delay_ms = ('%b()')[{{}, {}}]}
