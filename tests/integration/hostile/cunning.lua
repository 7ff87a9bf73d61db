-- Bodies of on_enqueue that want out, or to leave something behind.

--- load
return load('x = 1')()

--- dofile
return dofile('/etc/passwd')

--- require
return require('os')

--- io
return io.open('/etc/passwd')

--- os
return os.execute('true')

--- debug
return debug.getregistry()

--- coroutine
return coroutine.create(print)

--- python
return python.builtins

--- collectgarbage
collectgarbage('stop') return {}

--- dump
return string.dump(on_enqueue)

--- string metatable
getmetatable('').__index = nil return {}

--- string metatable set
setmetatable('', {}) return {}

--- string library
string.rep = nil string.format = error string.find = error table.concat = error return {fairness_key = 'a', throttle_keys = {'x', 1.5}}

--- all libraries
for k in pairs(_G) do if k ~= 'pairs' then _G[k] = nil end end return {fairness_key = 'a'}

--- env
local _ENV = {} x = 1 return {}

--- own function
on_enqueue = nil return {}

--- gc
setmetatable({}, {__gc = function() while true do end end}) return {}

--- gc later
local m = {} local t = setmetatable({}, m) m.__gc = function() while true do end end t = nil return {}

--- gc inherited
setmetatable({}, setmetatable({}, {__index = {__gc = function() while true do end end}})) return {}

--- mode
setmetatable({}, {__mode = 'k'}) return {}

--- headers written
msg.headers.x = 1 return {}

--- headers rawset
rawset(msg.headers, 'x', 1) return {}

--- headers metatable
getmetatable(msg.headers).__index = nil return {}

--- headers setmetatable
setmetatable(msg.headers, nil) return {}

--- headers by pairs
local f, t = pairs(msg.headers) t.x = 1 return {}

--- headers moved into
table.insert(msg.headers, 'x') return {}

--- not a table
return 5

--- nothing


--- error nil
error(nil)

--- error table
error({})

--- error with tostring
error(setmetatable({}, {__tostring = function() while true do end end}))

--- error of a function
error(print)

--- memory error forged
error('not enough memory', 0)

--- memory error forged and caught
pcall(error, 'not enough memory', 0) return {}

--- result with metatable
return setmetatable({}, {__index = function() while true do end end, __len = function() while true do end end})

--- result list with metatable
return {throttle_keys = setmetatable({}, {__index = function() while true do end end, __len = function() while true do end end})}

--- result keys with tostring
return {fairness_key = setmetatable({}, {__tostring = function() while true do end end})}

--- result of itself
local t = {} t.throttle_keys = t t.fairness_key = t return t

--- result giant list
local t = {} for i = 1, 5000 do t[i] = 'k' .. i end return {throttle_keys = t}

--- result giant strings
return {fairness_key = ('x'):rep(200000), throttle_keys = {('y'):rep(200000)}, weight = ('1'):rep(100000)}

--- result NaN
return {weight = 0/0, cost = 0/0, priority = -(0/0), delay_ms = 0/0, fairness_key = 0/0}

--- result inf
return {weight = 1/0, cost = -1/0, priority = 1/0, delay_ms = 1e308, fairness_key = 1/0}

--- result integers
return {weight = math.mininteger, cost = math.maxinteger, delay_ms = math.maxinteger}

--- result NULs
return {fairness_key = 'a\0b', throttle_keys = {'\0', 'a\1b', 'a\nb', '\4', '\2'}}

--- result not UTF-8
return {fairness_key = '\xff\xfe', throttle_keys = {'\xc0\x80', '\xed\xa0\x80'}}

--- result separators
return {fairness_key = 'a\nb', throttle_keys = {'\4errors\1x', 'a\1b'}}

--- result booleans
return {fairness_key = true, weight = {}, throttle_keys = 'x', cost = false, priority = print}

--- tostring replaced
tostring = error type = error pcall = error return {fairness_key = 1.5}

--- math replaced
math.floor = error math.type = error return {weight = 1.5, cost = '7'}

--- config secret
return {fairness_key = fila.get('auth:root') or fila.get('AUTH:root') or fila.get('auth:root\0')}

--- config of nothing
fila.get() fila.get(nil) fila.get({}) fila.get(1) fila.get(('x'):rep(10000)) fila.get('\xff') return {}

--- numbers
local x = math.mininteger // -1 local y = math.mininteger % -1 local z = 1 << 63 return {weight = x}
