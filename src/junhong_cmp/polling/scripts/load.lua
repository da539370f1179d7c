-- Tells how much of an account is in use: its calls in flight, and the rate it may be asked at.
--
-- KEYS[1] slots    ZSET "<kind>:<card>" -> end of lease, unix ms
-- KEYS[2] granted  see granted.lua
-- ARGV[1] configured rate, calls a second
--
-- Returns {slots whose lease still runs, calls a second as text}.
--
-- Atomic so that leases and rate are measured at the instant, and by the clock, that tells them.
local time = redis.call('TIME')
local now_us = tonumber(time[1]) * 1000000 + tonumber(time[2])
local rate = granted_rate(KEYS[2], tonumber(ARGV[1]), now_us)
local now = string.format('(%.0f', math.floor(now_us / 1000))
return {redis.call('ZCOUNT', KEYS[1], now, '+inf'), string.format('%.6g', rate)}
