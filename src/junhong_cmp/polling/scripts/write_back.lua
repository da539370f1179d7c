-- Writes polled cards of one shard back with their next due time, if the claim still holds.
--
-- KEYS[1] due   ZSET card id -> due, unix ms
-- ARGV    card, claim, next due, card, claim, next due, ...
--
-- Returns {1 or 0, ...}: one flag a card, 0 = superseded or removed. A removed card is not
-- resurrected.
--
-- Atomic because comparing the claim and replacing it must not be separable.
local reply = {}
for i = 1, #ARGV, 3 do
  local score = redis.call('ZSCORE', KEYS[1], ARGV[i])
  if score and tonumber(score) == tonumber(ARGV[i + 1]) then
    redis.call('ZADD', KEYS[1], 'XX', ARGV[i + 2], ARGV[i])
    reply[#reply + 1] = 1
  else
    reply[#reply + 1] = 0
  end
end
return reply
