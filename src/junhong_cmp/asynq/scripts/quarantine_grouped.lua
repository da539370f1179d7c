-- Moves tasks of an aggregation set whose message cannot be used to the archive, message untouched.
--
-- KEYS[1..2]  the set, asynq:{q}:archived
-- KEYS[i+2]   hash of task i
-- ARGV[1]     now, unix s
-- ARGV[2i..2i+1]  of task i: id, reason
-- Returns     how many were moved
-- Atomic because   the id must never be in two sets or in none.
redis.call('ZCARD', KEYS[2])
local moved = 0
for i = 1, #KEYS - 2 do
  if redis.call('ZREM', KEYS[1], ARGV[2 * i]) == 1 then
    redis.call('ZADD', KEYS[2], ARGV[1], ARGV[2 * i])
    redis.call('HSET', KEYS[i + 2], 'state', 'archived', 'quarantined', ARGV[2 * i + 1])
    moved = moved + 1
  end
end
return moved
