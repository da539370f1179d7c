-- Puts one task that needs neither lock nor group nor schedule into pending; enqueue.lua does the same for any task,
-- at twice the price.
--
-- KEYS[1]  hash of the task
-- KEYS[2]  asynq:{q}:pending
-- ARGV[1]  id
-- ARGV[2]  msg
-- ARGV[3]  now, unix ns
-- Returns  1 enqueued, 0 the id exists
-- Atomic because   id check, list entry and hash of a task must hold together.
-- The list is written first: only that can fail (a key of a wrong type), with nothing else written.
if redis.call('EXISTS', KEYS[1]) == 1 then
  return 0
end
redis.call('LPUSH', KEYS[2], ARGV[1])
redis.call('HSET', KEYS[1], 'msg', ARGV[2], 'state', 'pending', 'pending_since', ARGV[3])
return 1
