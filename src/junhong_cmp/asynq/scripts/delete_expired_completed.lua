-- Deletes completed tasks whose retention is over.
--
-- KEYS[1]  asynq:{q}:completed
-- ARGV[1]  prefix of the queue's keys; the ids, and so their keys, are only known here
-- ARGV[2]  now, unix s
-- ARGV[3]  most tasks to delete
-- Returns  how many were deleted
-- Atomic because   an id without hash, or a hash without id, would stay for ever.
local ids = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[2], 'LIMIT', 0, ARGV[3])
for _, id in ipairs(ids) do
  delete_task(ARGV[1], ARGV[1] .. 't:' .. id, id)
  redis.call('ZREM', KEYS[1], id)
end
return #ids
