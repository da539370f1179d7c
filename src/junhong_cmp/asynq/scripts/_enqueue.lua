-- Shared: put one task into its first state. Prepended to enqueue.lua and cron_fire.lua.
-- KEYS, ARGV and returns are those of the script it is prepended to; atomic as a part of it.

-- task_key    HASH of the task
-- unique_key  STRING of the lock; the task key again = no lock
-- target_key  pending LIST, scheduled ZSET or group ZSET, by item.state
-- groups_key  SET of group names
-- item        id, msg, state, score, ttl (of the lock, s), group ('' = none)
-- Returns 1 enqueued, 0 the id exists, -1 the lock is held.
-- The id is checked before the lock is taken: a refused task must not leave a lock behind. The entry in the
-- list or set is written first, as only that can fail (a key of a wrong type), with nothing else written.
local function enqueue_task(task_key, unique_key, target_key, groups_key, item, now_ns)
  if redis.call('EXISTS', task_key) == 1 then
    return 0
  end
  local locked = unique_key ~= task_key
  if locked and redis.call('EXISTS', unique_key) == 1 then
    return -1
  end
  if item.state == 'pending' then
    redis.call('LPUSH', target_key, item.id)
    redis.call('HSET', task_key, 'msg', item.msg, 'state', item.state, 'pending_since', now_ns)
  else
    if item.state == 'aggregating' then
      redis.call('SADD', groups_key, item.group)
    end
    redis.call('ZADD', target_key, item.score, item.id)
    redis.call('HSET', task_key, 'msg', item.msg, 'state', item.state)
  end
  if item.group ~= '' then
    -- Also while scheduled, unlike Go: forwarding finds the group by this field, in Go too.
    redis.call('HSET', task_key, 'group', item.group)
  end
  if locked then
    -- For groups too, unlike Go: whoever deletes the task finds the lock to free by this field.
    redis.call('SET', unique_key, item.id, 'EX', item.ttl)
    redis.call('HSET', task_key, 'unique_key', unique_key)
  end
  return 1
end
