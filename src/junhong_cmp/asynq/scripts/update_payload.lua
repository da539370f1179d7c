-- Gives a scheduled task another payload, and its unique lock with it.
--
-- KEYS[1]  hash of the task
-- KEYS[2]  asynq:{q}:scheduled
-- KEYS[3]  the lock it has, KEYS[4] the lock that fits the new payload; KEYS[1] = none
-- ARGV[1]  id
-- ARGV[2]  SHA-1 of the message as it was read
-- ARGV[3]  the new message
-- Returns  1 written, 0 there is no such task, -1 it is not scheduled, -2 the message has changed meanwhile,
--          -3 another task holds the lock that fits the new payload
-- Atomic because   a worker that takes the task in between would run one payload and store the other, and a
--                  second task of the new payload could slip in between the locks.
-- A lock that has run out, or went to another task, is not taken anew.
local fields = redis.call('HMGET', KEYS[1], 'msg', 'state')
if not fields[1] then
  return 0
elseif fields[2] ~= 'scheduled' or not redis.call('ZSCORE', KEYS[2], ARGV[1]) then
  return -1
elseif redis.sha1hex(fields[1]) ~= ARGV[2] then
  return -2
end
if KEYS[3] ~= KEYS[1] and KEYS[4] ~= KEYS[3] then
  if redis.call('GET', KEYS[3]) == ARGV[1] then
    local holder = redis.call('GET', KEYS[4])
    if holder and holder ~= ARGV[1] then
      return -3
    end
    redis.call('RENAME', KEYS[3], KEYS[4]) -- with the time it has left
  end
  redis.call('HSET', KEYS[1], 'unique_key', KEYS[4])
end
redis.call('HSET', KEYS[1], 'msg', ARGV[3])
return 1
