-- Tells the time all due times and claims are measured in.
--
-- KEYS[1] any key; it only chooses the node of a cluster   ARGV none
--
-- Returns unix ms.
--
-- Atomic by nature, as one command is; a script and not TIME itself, because a cluster client
-- would ask every node.
local time = redis.call('TIME')
return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
