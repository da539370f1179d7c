-- Shared: where a queue keeps the tasks of each state. Prepended to the inspector's scripts.
-- KEYS[1..9]  asynq:{q}: pending, active, lease, scheduled, retry, archived, completed, groups,
--             aggregation_sets; what follows is of the script it is prepended to
-- ARGV[1]     prefix of the queue's keys; ARGV[2] now, unix s; ARGV[3] now, unix ns; the rest as there
-- Returns are those of the script it is prepended to; atomic as a part of it.
local PENDING, ACTIVE, LEASE, ARCHIVED, GROUPS, SETS = KEYS[1], KEYS[2], KEYS[3], KEYS[6], KEYS[8], KEYS[9]
local SORTED = { scheduled = KEYS[4], retry = KEYS[5], archived = KEYS[6], completed = KEYS[7] }
local PREFIX, NOW_S, NOW_NS = ARGV[1], ARGV[2], ARGV[3]

local function task_key(id)
  return PREFIX .. 't:' .. id
end

local function group_key(group)
  return PREFIX .. 'g:' .. group
end

-- State and group of a task; nil if there is no task under this id, only nothing, a stub or a foreign type.
local function read_task(id)
  local size = redis.pcall('HSTRLEN', task_key(id), 'msg')
  if type(size) ~= 'number' or size == 0 then
    return nil, ''
  end
  local fields = redis.call('HMGET', task_key(id), 'state', 'group')
  return fields[1] or '', fields[2] or ''
end

-- True if an aggregator has the task in its hands.
local function is_being_aggregated(id, group)
  local start = group_key(group) .. ':'
  for _, set in ipairs(redis.call('ZRANGE', SETS, 0, -1)) do
    if string.sub(set, 1, #start) == start and type(redis.pcall('ZSCORE', set, id)) == 'string' then
      return true
    end
  end
  return false
end

local function is_in_work(id)
  return redis.call('ZSCORE', LEASE, id) or redis.call('LPOS', ACTIVE, id)
end

-- True if the place that belongs to the state holds the id. Costs a pass over `pending` for that state.
local function is_in_place(id, state, group)
  if SORTED[state] then
    return redis.call('ZSCORE', SORTED[state], id)
  elseif state == 'pending' then
    return redis.call('LPOS', PENDING, id)
  elseif state == 'active' then
    return is_in_work(id)
  elseif state == 'aggregating' then
    return redis.call('ZSCORE', group_key(group), id) or is_being_aggregated(id, group)
  end
  return false
end

local function leave_group(id, group)
  redis.call('ZREM', group_key(group), id)
  if redis.call('EXISTS', group_key(group)) == 0 then
    redis.call('SREM', GROUPS, group)
  end
end

-- Takes the id out of the place that belongs to its state.
local function leave_place(id, state, group)
  if SORTED[state] then
    redis.call('ZREM', SORTED[state], id)
  elseif state == 'pending' then
    redis.call('LREM', PENDING, -1, id)
  elseif state == 'aggregating' then
    leave_group(id, group)
  elseif state == 'active' then
    redis.call('LREM', ACTIVE, -1, id)
    redis.call('ZREM', LEASE, id)
  end
end
