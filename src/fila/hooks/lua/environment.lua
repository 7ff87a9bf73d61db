-- What a script sees: this table is all its globals.

local native, parts = ...

local MATH = {
  "abs", "acos", "asin", "atan", "ceil", "cos", "deg", "exp", "floor", "fmod", "huge", "log", "max",
  "maxinteger", "min", "mininteger", "modf", "pi", "rad", "random", "sin", "sqrt", "tan",
  "tointeger", "type", "ult",
}

local environment = {}
for name, value in native.next, parts.base do environment[name] = value end

local mathematics = {}
for index = 1, #MATH do mathematics[MATH[index]] = native.math[MATH[index]] end
-- The same row of numbers in each new runtime.
native.math.randomseed(1)

for name, value in native.next, parts.matching do parts.strings[name] = value end

environment.string = parts.strings
environment.math = mathematics
environment.table = parts.tables
environment.utf8 = parts.codes
environment.fila = { get = parts.config.get, helpers = parts.policies }
environment._G = environment

-- ("x"):upper() goes where string.upper goes; nobody gets at what leads there.
local metatable = native.metatable_of("")
metatable.__index = parts.strings
metatable.__metatable = false

return environment
