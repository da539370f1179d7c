-- Counts the in-flight slots of one account whose lease still runs.
--
-- KEYS[1] slots  ZSET "<kind>:<card>" -> end of lease, unix ms   ARGV none
--
-- Returns the count.
--
-- A script so that leases are measured by the clock that gave them.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
return redis.call('ZCOUNT', KEYS[1], '(' .. string.format('%.0f', now), '+inf')
