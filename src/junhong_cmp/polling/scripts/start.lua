-- Starts claimed cards of one shard: whoever holds the claim gets a new one, once.
--
-- KEYS[1] due    ZSET card id -> due, unix ms
-- KEYS[2] claim  the highest claim the shard has given
-- ARGV[1] timeout, ms   ARGV[2..] card, claim, card, claim, ...
--
-- Returns {now, new claim, 1 or 0, 1 or 0, ...}: one flag a card, 0 = superseded or removed.
-- The new claim exceeds every claim the shard ever gave, so a task delivered twice starts once.
--
-- Atomic because comparing the claim and replacing it must not be separable.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local claim = math.max(now + tonumber(ARGV[1]), (tonumber(redis.call('GET', KEYS[2])) or 0) + 1)
local text = string.format('%.0f', claim)
local reply = {string.format('%.0f', now), text}
local started = false
for i = 2, #ARGV, 2 do
  local score = redis.call('ZSCORE', KEYS[1], ARGV[i])
  if score and tonumber(score) == tonumber(ARGV[i + 1]) then
    redis.call('ZADD', KEYS[1], 'XX', text, ARGV[i])
    reply[#reply + 1] = 1
    started = true
  else
    reply[#reply + 1] = 0
  end
end
if started then
  redis.call('SET', KEYS[2], text)
end
return reply
