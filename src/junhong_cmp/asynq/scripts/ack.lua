-- Takes back up to 500 tasks of one queue from their workers, any mix of kinds.
--
-- KEYS[1..8]   asynq:{q}: active, lease, pending, retry, archived, completed, processed, failed
-- KEYS[9..10]  asynq:{q}:processed:<day>, asynq:{q}:failed:<day>
-- KEYS[11..]  of each task its hash, and after it, unless its kind is '', its unique lock (the hash again = none)
-- ARGV[1]  prefix of the queue's keys          ARGV[2]  now, unix s       ARGV[3]  now, unix ns
-- ARGV[4]  expiry of the day counters, unix s  ARGV[5]  archived at or before this (unix s) is over age
-- ARGV[6]  most archived tasks
-- ARGV[7..]  of each task: kind, owner token, SHA-1 of the message as dequeued; a kind of '' is done without a
--             lock, the most frequent case; else follow: lease must have run out at (unix s, 0 = any; else this
--             is a recovery, which is noted in the hash: an archived task starts anew), score (unix s), new
--             message ('' = as it is), 1 if it counts as a failure
-- Returns  for each task 1 written, 0 somebody else's, -1 gone
-- Atomic because   leaving active and entering the next state must hold together, and the check that the
--                  task is still this worker's must hold while that is written.
-- All checks come before the first write, as scripts are not rolled back. A lease that is missing does not
-- matter while the task is active and owned.
local active, lease, pending, retry, archived, completed = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local prefix, now_s, now_ns = ARGV[1], ARGV[2], ARGV[3]
local processed, failed, trim = 0, 0, false
local results = {}
local KEPT_RECOVERIES = 1100 -- bytes: a hundred instants

-- A key of a wrong type must fail here, before the first write.
redis.call('LLEN', active)
redis.call('LLEN', pending)
for _, key in ipairs({ lease, retry, archived, completed }) do
  redis.call('ZCARD', key)
end

local function leave_active(id)
  -- From the tail, one: the oldest end first, instead of a scan of the whole list.
  redis.call('LREM', active, -1, id)
  redis.call('ZREM', lease, id)
end

-- The recoveries of a task, unix s, newest last; a failure of the worker is no failure of the task.
local function note_recovery(key, kind)
  if kind == 'retry' then
    local earlier = redis.call('HGET', key, 'recoveries')
    redis.call('HSET', key, 'recoveries', earlier and string.sub(earlier, -KEPT_RECOVERIES) .. ' ' .. now_s or now_s)
  else
    redis.call('HDEL', key, 'recoveries')
  end
end

local function store(key, state, msg)
  redis.call('HSET', key, 'state', state)
  if msg ~= '' then
    redis.call('HSET', key, 'msg', msg)
  end
  redis.call('HDEL', key, 'owner')
end

local id_starts = #prefix + 3 -- behind the "t:"
local done_ids, done_keys, gone = {}, {}, {}
local k, a, i = 11, 7, 0
while k <= #KEYS do
  local key, kind = KEYS[k], ARGV[a]
  local id = string.sub(key, id_starts)
  local lock, limit, score, msg, counts = key, 0, '', '', false
  local fields = redis.pcall('HMGET', key, 'state', 'owner', 'msg')
  local ours = fields[1] == 'active' and (fields[2] or '') == ARGV[a + 1]
      and redis.sha1hex(fields[3] or '') == ARGV[a + 2]
  if kind == '' then
    kind = 'done'
    k, a = k + 1, a + 3
  else
    lock, limit, score, msg, counts = KEYS[k + 1], tonumber(ARGV[a + 3]), ARGV[a + 4], ARGV[a + 5], ARGV[a + 6] == '1'
    k, a = k + 2, a + 7
  end
  i = i + 1
  local expiry = limit > 0 and tonumber(redis.call('ZSCORE', lease, id) or '0') or 0
  if not fields[3] or gone[id] then
    leave_active(id)
    results[i] = -1
  elseif not ours or expiry > limit then
    results[i] = 0
  else
    results[i] = 1
    if limit > 0 then
      note_recovery(key, kind)
    end
    if kind == 'done' then
      redis.call('LREM', active, -1, id)
      done_ids[#done_ids + 1], done_keys[#done_keys + 1] = id, key
      gone[id] = true
      processed = processed + 1
    elseif kind == 'complete' then
      redis.call('ZADD', completed, score, id)
      leave_active(id)
      store(key, 'completed', msg)
      processed = processed + 1
    elseif kind == 'retry' then
      redis.call('ZADD', retry, score, id)
      leave_active(id)
      store(key, 'retry', msg)
      if counts then
        processed, failed = processed + 1, failed + 1
      end
    elseif kind == 'archive' then
      redis.call('ZADD', archived, now_s, id)
      leave_active(id)
      store(key, 'archived', msg)
      processed, failed = processed + 1, failed + 1
      trim = true
    else
      -- Requeue: to the head, as the task has waited its turn already. Postpone: to the tail.
      redis.call(kind == 'requeue' and 'RPUSH' or 'LPUSH', pending, id)
      leave_active(id)
      store(key, 'pending', msg)
      redis.call('HSET', key, 'pending_since', now_ns)
    end
    if (kind == 'done' or kind == 'complete') and lock ~= key then
      release_lock(prefix, lock, id)
    end
  end
end
if #done_ids > 0 then
  redis.call('ZREM', lease, unpack(done_ids))
  redis.call('DEL', unpack(done_keys))
end
count_day(KEYS[9], processed, ARGV[4])
count_day(KEYS[10], failed, ARGV[4])
count_total(KEYS[7], KEYS[8], processed, failed)
if trim then
  trim_archived(archived, prefix, ARGV[5], tonumber(ARGV[6]))
end
return results
