-- Finds tasks that no list and no set holds, and puts them back.
--
-- KEYS[1..9], ARGV[1..3]  see _places.lua
-- ARGV[4]  1 = mend, 0 = only tell
-- ARGV[5]  archived at or before this (unix s) is over age; ARGV[6] most archived tasks
-- ARGV[7]  what to note on a scheduled task whose time is lost, ARGV[8] on one whose state is unknown
-- ARGV[2i+7..2i+8]  of task i: id, 1 if it was seen in `pending` a moment ago
-- Returns  {tasks looked at, {fault, id, remedy, …}}; fewer looked at than given = come again
-- Atomic because   a task between two places would seem to be in none.
-- Only `pending` cannot be asked cheaply: what was not seen there costs a pass over it, a few a call.
local MEND, ARCHIVED_UNTIL, ARCHIVE_SIZE = ARGV[4] == '1', tonumber(ARGV[5]), tonumber(ARGV[6])
local MOST_COMPARISONS = 100000
local findings, seen, comparisons = {}, 0, 0

local function tell(fault, id, remedy)
  findings[#findings + 1] = fault
  findings[#findings + 1] = id
  findings[#findings + 1] = remedy
end

local function number_in_message(id, field)
  return tonumber(message_field(redis.call('HGET', task_key(id), 'msg'), field) or 0) or 0
end

-- Each returns what was done, or would be.
local restore = {}

function restore.pending(id)
  if MEND then
    redis.call('RPUSH', PENDING, id)
    redis.call('HSETNX', task_key(id), 'pending_since', NOW_NS)
  end
  return 'requeued'
end

function restore.active(id)
  if MEND then
    redis.call('LPUSH', ACTIVE, id)
    redis.call('ZADD', LEASE, NOW_S, id)
  end
  return 'recovering'
end

function restore.retry(id)
  if MEND then
    redis.call('ZADD', SORTED.retry, NOW_S, id)
  end
  return 'requeued'
end

function restore.aggregating(id, group)
  if MEND then
    redis.call('ZADD', group_key(group), NOW_S, id)
    redis.call('SADD', GROUPS, group)
  end
  return 'requeued'
end

local function restore_until(id, set, score, is_over)
  if MEND and is_over then
    forget_task(id)
  elseif MEND then
    redis.call('ZADD', set, score, id)
  end
  return is_over and 'deleted' or 'restored'
end

function restore.archived(id)
  local at = number_in_message(id, 11)
  at = at > 0 and at or tonumber(NOW_S)
  return restore_until(id, ARCHIVED, at, at <= ARCHIVED_UNTIL or redis.call('ZCARD', ARCHIVED) >= ARCHIVE_SIZE)
end

function restore.completed(id)
  local expiry = number_in_message(id, 13) + number_in_message(id, 12)
  return restore_until(id, SORTED.completed, expiry, expiry <= tonumber(NOW_S))
end

-- Nobody can say when it was to run: too early may be worse than late, so an operator decides.
local function archive(id, reason)
  if MEND then
    redis.call('ZADD', ARCHIVED, NOW_S, id)
    redis.call('HSET', task_key(id), 'state', 'archived', 'quarantined', reason)
  end
  return 'archived'
end

local function check(id, is_pending)
  local state, group = read_task(id)
  if not state then
    local kind = redis.call('TYPE', task_key(id)).ok
    if kind == 'hash' then
      tell('stub', id, 'deleted')
      if MEND then
        redis.call('DEL', task_key(id))
      end
    elseif kind ~= 'none' then
      tell('foreign', id, 'kept')
    end
    return
  end
  if state == 'pending' then
    if is_pending then
      return
    end
    comparisons = comparisons + redis.call('LLEN', PENDING)
  end
  if is_in_place(id, state, group) then
    return
  end
  if state == 'scheduled' then
    tell('orphan', id, archive(id, ARGV[7]))
  elseif restore[state] and (state ~= 'aggregating' or group ~= '') then
    tell('orphan', id, restore[state](id, group))
  else
    tell('orphan', id, archive(id, ARGV[8]))
  end
end

for i = 9, #ARGV, 2 do
  if comparisons > MOST_COMPARISONS then
    break
  end
  check(ARGV[i], ARGV[i + 1] == '1')
  seen = seen + 1
end
return { seen, findings }
