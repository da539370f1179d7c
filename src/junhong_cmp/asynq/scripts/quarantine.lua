-- Moves active tasks whose message cannot be used to the archive, message untouched, for an operator to see.
--
-- KEYS[1..3]  asynq:{q}: active, lease, archived
-- KEYS[i+3]   hash of task i
-- ARGV[1]     now, unix s
-- ARGV[3i-1..3i+1]  of task i: id, owner token, reason
-- Returns     for each task 1 moved, 0 it is not this owner's any more
-- Atomic because   the id must never be in two sets or in none.
redis.call('ZCARD', KEYS[3])
local moved = {}
for i = 1, #KEYS - 3 do
  local a = 3 * i - 1
  local fields = redis.pcall('HMGET', KEYS[i + 3], 'state', 'owner')
  if fields[1] == 'active' and (fields[2] or '') == ARGV[a + 1] then
    redis.call('ZADD', KEYS[3], ARGV[1], ARGV[a])
    redis.call('LREM', KEYS[1], -1, ARGV[a])
    redis.call('ZREM', KEYS[2], ARGV[a])
    redis.call('HSET', KEYS[i + 3], 'state', 'archived', 'quarantined', ARGV[a + 2])
    redis.call('HDEL', KEYS[i + 3], 'owner')
    moved[i] = 1
  else
    moved[i] = 0
  end
end
return moved
