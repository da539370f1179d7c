-- Opens a new term: gives an epoch higher than any given before.
--
-- KEYS[1] lease  HASH, field epoch = the highest epoch given   ARGV none
--
-- Returns the epoch as a string: max(previous + 1, Redis time in ms), so that it grows even when
-- the hash was lost with all other data.
--
-- Atomic because two processes opening terms at once must get different epochs.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local previous = tonumber(redis.call('HGET', KEYS[1], 'epoch')) or 0
local epoch = string.format('%.0f', math.max(previous + 1, now))
redis.call('HSET', KEYS[1], 'epoch', epoch)
return epoch
