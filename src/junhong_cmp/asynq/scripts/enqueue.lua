-- Puts up to 500 tasks of one queue into their first state.
--
-- KEYS[1..2]  asynq:{q}: groups, pending
-- KEYS[3..]   of each task its hash; after it, if its state is given, its unique lock (the hash again = none) and
--             where its id goes: asynq:{q}:pending, asynq:{q}:scheduled or asynq:{q}:g:<group>
-- ARGV[1]     now, unix ns
-- ARGV[2..]   of each task id, msg, state; '' is pending without lock or group, the most frequent case; else
--             follow score (unix s), lock time (s), group ('' = none)
-- Returns     for each task 1 enqueued, 0 the id exists, -1 the lock is held
-- Atomic because   id check, lock, hash and list entry of a task must hold together, or a crash in between
--                  leaves a task no worker can find.
local groups_key, pending_key = KEYS[1], KEYS[2]
local now_ns = ARGV[1]
local results, new_ids = {}, {}
local k, a = 3, 2

-- A key of a wrong type must fail here, before the first write.
redis.call('LLEN', pending_key)

local function push_new_ids()
  if #new_ids > 0 then
    redis.call('LPUSH', pending_key, unpack(new_ids))
    new_ids = {}
  end
end

while k <= #KEYS do
  local key, id, state = KEYS[k], ARGV[a], ARGV[a + 2]
  if state == '' then
    if redis.call('EXISTS', key) == 1 then
      results[#results + 1] = 0
    else
      redis.call('HSET', key, 'msg', ARGV[a + 1], 'state', 'pending', 'pending_since', now_ns)
      new_ids[#new_ids + 1] = id
      results[#results + 1] = 1
    end
    k, a = k + 1, a + 3
  else
    push_new_ids() -- tasks keep the order they were given in
    local item = {
      id = id, msg = ARGV[a + 1], state = state, score = ARGV[a + 3], ttl = ARGV[a + 4], group = ARGV[a + 5],
    }
    results[#results + 1] = enqueue_task(key, KEYS[k + 1], KEYS[k + 2], groups_key, item, now_ns)
    k, a = k + 3, a + 6
  end
end
push_new_ids()
return results
