-- Moves due tasks of one sorted set on.
--
-- KEYS[1]  asynq:{q}:scheduled or asynq:{q}:retry
-- KEYS[2..4]  asynq:{q}: pending, groups, archived
-- ARGV[1]  prefix of the queue's keys; the ids and groups, and so their keys, are only known here
-- ARGV[2]  now, unix s
-- ARGV[3]  now, unix ns
-- ARGV[4]  most tasks to move
-- Returns  how many ids left the set
-- Atomic because   the id must never be in two places or in none.
-- A group is entered in the set of groups too: without that no aggregator would look at it. A task whose
-- group's key holds something foreign is set aside: it must not keep all that is due behind it waiting.
local function is_group(key)
  return type(redis.pcall('ZCARD', key)) == 'number'
end
local ids = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[2], 'LIMIT', 0, ARGV[4])
for _, id in ipairs(ids) do
  local key = ARGV[1] .. 't:' .. id
  local size = redis.pcall('HSTRLEN', key, 'msg')
  if type(size) == 'number' and size > 0 then
    local group = redis.call('HGET', key, 'group')
    if group and group ~= '' and not is_group(ARGV[1] .. 'g:' .. group) then
      redis.call('ZADD', KEYS[4], ARGV[2], id)
      redis.call('HSET', key, 'state', 'archived', 'quarantined', 'group')
    elseif group and group ~= '' then
      redis.call('SADD', KEYS[3], group)
      redis.call('ZADD', ARGV[1] .. 'g:' .. group, ARGV[2], id)
      redis.call('HSET', key, 'state', 'aggregating')
    else
      redis.call('LPUSH', KEYS[2], id)
      redis.call('HSET', key, 'state', 'pending', 'pending_since', ARGV[3])
    end
  end
  redis.call('ZREM', KEYS[1], id)
end
return #ids
