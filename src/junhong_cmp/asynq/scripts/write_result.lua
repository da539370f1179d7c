-- Stores the result of a task in work.
--
-- KEYS[1]  hash of the task
-- ARGV[1]  result
-- ARGV[2]  owner token, '' = whoever
-- Returns  1 stored, 0 the task is gone or somebody else's
-- Atomic because   writing to a task just deleted would create a hash without a message.
local fields = redis.call('HMGET', KEYS[1], 'state', 'owner')
if fields[1] ~= 'active' or (ARGV[2] ~= '' and fields[2] ~= ARGV[2]) then
  return 0
end
redis.call('HSET', KEYS[1], 'result', ARGV[1])
return 1
