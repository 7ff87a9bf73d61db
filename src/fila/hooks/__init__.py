"""Lua: the scripts of queues, their sandbox, and what is made of what they return."""
