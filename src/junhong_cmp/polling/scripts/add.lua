-- Adds cards to one shard; a card already there keeps its score, be it due time or claim.
--
-- KEYS[1] due   ZSET card id -> due, unix ms
-- ARGV    card, due, card, due, ...
--
-- Returns {1 or 0, ...}: one flag a card, 1 = it was missing.
--
-- Atomic because ZADD NX tells only how many cards of a batch were new, not which.
local reply = {}
for i = 1, #ARGV, 2 do
  reply[#reply + 1] = redis.call('ZADD', KEYS[1], 'NX', ARGV[i + 1], ARGV[i])
end
return reply
