-- Enqueues the task made of an aggregation set and deletes the set with its tasks and their locks.
--
-- KEYS[1..3]  the set, asynq:{q}: aggregation_sets, groups
-- KEYS[4..6]  of the new task: its hash, its unique lock (its hash again = none), where its id goes
-- KEYS[2i+5..2i+6]  of task i of the set: its hash, its unique lock (its hash again = none)
-- ARGV[1]  prefix of the queue's keys
-- ARGV[2]  now, unix ns
-- ARGV[3..8]  of the new task: id, msg, state, score, lock time (s), group ('' = none)
-- ARGV[i+8]  id of task i of the set
-- Returns  2 the set is gone: it was committed before, or taken back as it took too long; else as enqueue:
--          1, 0 or -1, and with the latter two nothing was written
-- Atomic because   a crash between the two writes would run the tasks of the set twice or never.
if not redis.call('ZSCORE', KEYS[2], KEYS[1]) then
  return 2
end
local members = {}
for i = 9, #ARGV do
  members[ARGV[i]] = true
end
local key, lock = KEYS[4], KEYS[5]
if lock ~= key and redis.call('EXISTS', key) == 0 and members[redis.pcall('GET', lock) or ''] then
  redis.call('DEL', lock) -- held by a task of the set, which the new task replaces
end
local item = { id = ARGV[3], msg = ARGV[4], state = ARGV[5], score = ARGV[6], ttl = ARGV[7], group = ARGV[8] }
local result = enqueue_task(key, lock, KEYS[6], KEYS[3], item, ARGV[2])
if result ~= 1 then
  return result
end
for i = 9, #ARGV do
  local task, id = KEYS[2 * (i - 8) + 5], ARGV[i]
  release_lock(ARGV[1], KEYS[2 * (i - 8) + 6], id)
  delete_task(ARGV[1], task, id)
end
redis.call('DEL', KEYS[1])
redis.call('ZREM', KEYS[2], KEYS[1])
return result
