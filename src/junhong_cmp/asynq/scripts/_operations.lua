-- Shared: what an operator may do to a task. Needs _places, _forget, _trim; prepended to
-- operate_task.lua and operate_all.lua.
-- ARGV[4] operation: run, archive, delete   ARGV[5] archived at or before this (unix s) is over age
-- ARGV[6] most archived tasks; KEYS and returns are those of the script it is prepended to; atomic as a part
-- of it.
local OPERATION, ARCHIVED_UNTIL, ARCHIVE_SIZE = ARGV[4], ARGV[5], tonumber(ARGV[6])

-- Puts a task that has left its place where the operation wants it.
local function operate(id)
  if OPERATION == 'run' then
    redis.call('LPUSH', PENDING, id)
    redis.call('HSET', task_key(id), 'state', 'pending', 'pending_since', NOW_NS)
    redis.call('HDEL', task_key(id), 'owner')
  elseif OPERATION == 'archive' then
    redis.call('ZADD', ARCHIVED, NOW_S, id)
    redis.call('HSET', task_key(id), 'state', 'archived')
    redis.call('HDEL', task_key(id), 'pending_since', 'owner')
  else
    forget_task(id)
  end
end

-- Keeps the archive within its limits; returns how many tasks that cost.
local function trim_after_operation()
  if OPERATION ~= 'archive' then
    return 0
  end
  local before = redis.call('ZCARD', ARCHIVED)
  trim_archived(ARCHIVED, PREFIX, ARCHIVED_UNTIL, ARCHIVE_SIZE)
  return before - redis.call('ZCARD', ARCHIVED)
end
