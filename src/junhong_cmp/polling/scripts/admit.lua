-- Admits polls of one account: an in-flight slot for each card and a rate token for each call.
--
-- KEYS[1] slots  ZSET "<kind>:<card>" -> end of lease, unix ms
-- KEYS[2] rate   unix microseconds at which the next call is free
-- ARGV[1] concurrency   ARGV[2] microseconds between calls   ARGV[3] burst, calls
-- ARGV[4] longest wait for a token, ms   ARGV[5] slot lease, ms   ARGV[6..] members
--
-- Returns {lease, integer, ...}: the end of the lease, then for each member the milliseconds to
-- wait before the call (slot taken), or -1 no slot or token in time, -2 the card is in flight.
-- A slot is a lease named after the card, so a crashed holder frees it by time, and no card can be
-- in flight twice, even one that was removed and added again during its own poll.
--
-- Atomic because of two cards asking for the last slot or token one must be refused.
local time = redis.call('TIME')
local now_us = tonumber(time[1]) * 1000000 + tonumber(time[2])
local now = math.floor(now_us / 1000)
local interval, burst = tonumber(ARGV[2]), tonumber(ARGV[3])
local longest = tonumber(ARGV[4]) * 1000
local lease = string.format('%.0f', now + tonumber(ARGV[5]))
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now))
local free = tonumber(ARGV[1]) - redis.call('ZCARD', KEYS[1])
-- A point further ahead than any wait allowed stems from a clock stepped back: forget it.
local point = tonumber(redis.call('GET', KEYS[2])) or 0
if point > now_us + longest + interval * (burst + 1) then
  point = 0
end
point = math.max(point, now_us - interval * (burst - 1))
local reply, taken = {lease}, false
for i = 6, #ARGV do
  local wait = math.max(0, point - now_us)
  if redis.call('ZSCORE', KEYS[1], ARGV[i]) then
    reply[#reply + 1] = -2
  elseif free < 1 or wait > longest then
    reply[#reply + 1] = -1
  else
    redis.call('ZADD', KEYS[1], lease, ARGV[i])
    free = free - 1
    point = point + interval
    taken = true
    reply[#reply + 1] = math.ceil(wait / 1000)
  end
end
if taken then
  local kept = math.max(tonumber(ARGV[5]), math.ceil((point - now_us) / 1000) + 1)
  redis.call('SET', KEYS[2], string.format('%.0f', point), 'PX', string.format('%.0f', kept))
end
return reply
