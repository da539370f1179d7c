-- Counts the in-flight slots of one account whose lease still runs.
--
-- KEYS[1] slots  ZSET "<kind>:<card>" -> end of lease, unix ms   ARGV none
--
-- Returns the count.
--
-- Atomic so that leases are measured at the instant, and by the clock, that counts them.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
return redis.call('ZCOUNT', KEYS[1], '(' .. string.format('%.0f', now), '+inf')
