-- Puts up to 500 tasks of one queue into their first state.
--
-- KEYS[1]          asynq:{q}:groups
-- KEYS[3i-1..3i+1] of task i: its hash, its unique lock (its hash again = none), and where its id goes:
--                  asynq:{q}:pending, asynq:{q}:scheduled or asynq:{q}:g:<group>
-- ARGV[1]          now, unix ns
-- ARGV[6i-4..6i+1] of task i: id, msg, state, score (unix s), lock time (s), group ('' = none)
-- Returns          for each task 1 enqueued, 0 the id exists, -1 the lock is held
-- Atomic because   id check, lock, hash and list entry of a task must hold together, or a crash in between
--                  leaves a task no worker can find.
local groups_key = KEYS[1]
local now_ns = ARGV[1]
local results = {}
for i = 1, (#KEYS - 1) / 3 do
  local k = 3 * i - 1
  local a = 6 * i - 4
  local item = {
    id = ARGV[a], msg = ARGV[a + 1], state = ARGV[a + 2],
    score = ARGV[a + 3], ttl = ARGV[a + 4], group = ARGV[a + 5],
  }
  results[i] = enqueue_task(KEYS[k], KEYS[k + 1], KEYS[k + 2], groups_key, item, now_ns)
end
return results
