-- Removes cards from one shard, each with or without a condition on its score.
--
-- KEYS[1] due   ZSET card id -> due, unix ms
-- ARGV    card, score or "", card, score or "", ...
--
-- Returns {1 or 0, ...}: one flag a card, 0 = not there, or its score is another.
--
-- Atomic because a card added anew between the comparison and the removal would be lost.
local reply = {}
for i = 1, #ARGV, 2 do
  local score = redis.call('ZSCORE', KEYS[1], ARGV[i])
  if score and (ARGV[i + 1] == '' or tonumber(score) == tonumber(ARGV[i + 1])) then
    redis.call('ZREM', KEYS[1], ARGV[i])
    reply[#reply + 1] = 1
  else
    reply[#reply + 1] = 0
  end
end
return reply
