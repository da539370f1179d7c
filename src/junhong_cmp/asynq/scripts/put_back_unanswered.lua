-- Puts tasks back to the head of their queue that were leased by a dequeue whose reply got lost.
--
-- KEYS[1..3]  asynq:{q}: active, lease, pending
-- ARGV[1]  prefix of task hashes; the ids, and so their keys, are only known here
-- ARGV[2]  now, unix ns
-- ARGV[3]  most active entries to look at, newest first
-- ARGV[4…] owner tokens of the lost dequeues
-- Returns  how many tasks were put back
-- Atomic because   an id must never be in two lists or in none, and the token must still be on it then.
-- The newest task is looked at first and so ends up farthest from the head: the order is as before.
redis.call('LLEN', KEYS[3])
redis.call('ZCARD', KEYS[2])
local lost = {}
for i = 4, #ARGV do
  lost[ARGV[i]] = true
end
local count = 0
for _, id in ipairs(redis.call('LRANGE', KEYS[1], 0, tonumber(ARGV[3]) - 1)) do
  local key = ARGV[1] .. id
  local fields = redis.pcall('HMGET', key, 'state', 'owner')
  if fields[1] == 'active' and fields[2] and lost[fields[2]] then
    redis.call('RPUSH', KEYS[3], id)
    redis.call('LREM', KEYS[1], 1, id)
    redis.call('ZREM', KEYS[2], id)
    redis.call('HSET', key, 'state', 'pending', 'pending_since', ARGV[2])
    redis.call('HDEL', key, 'owner')
    count = count + 1
  end
end
return count
