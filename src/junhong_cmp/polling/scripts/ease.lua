-- Lowers the rate an account is asked at, because its carrier refused a call as coming too fast.
--
-- KEYS[1] granted  see granted.lua
-- ARGV[1] configured rate, calls a second   ARGV[2] microseconds within which one lowering is enough
-- ARGV[3] share that is left of the rate   ARGV[4] share that is left if it was lowered just before
-- ARGV[5] microseconds that are "just before"   ARGV[6] lowest rate
-- ARGV[7] seconds in which the rate grows by what it is lowered to   ARGV[8] seconds to the whole, at most
--
-- Returns the rate from now on, as text; "" if it is left as it is: what was refused was admitted before the
-- last lowering, and says nothing new. The key is gone when the rate has grown to the configured one.
--
-- Atomic because of many processes refused at once only one may lower the rate.
local time = redis.call('TIME')
local now_us = tonumber(time[1]) * 1000000 + tonumber(time[2])
local configured = tonumber(ARGV[1])
local rate, since = granted_rate(KEYS[1], configured, now_us)
local passed = since and now_us - since or math.huge
if passed >= 0 and passed < tonumber(ARGV[2]) then
  return ''
end
local share = tonumber(passed < tonumber(ARGV[5]) and ARGV[4] or ARGV[3])
local lowered = math.min(rate, math.max(tonumber(ARGV[6]), rate * share))
local growth = math.max(lowered / tonumber(ARGV[7]), configured / tonumber(ARGV[8]))
local kept = math.ceil((configured - lowered) / growth * 1000) + 1
redis.call('SET', KEYS[1], string.format('%.6g %.0f %.6g', lowered, now_us, growth), 'PX', string.format('%.0f', kept))
return string.format('%.6g', lowered)
