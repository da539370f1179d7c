-- Renews the leases of tasks a worker still owns.
--
-- KEYS[1]     asynq:{q}:lease
-- KEYS[i+1]   hash of task i
-- ARGV[1]     new expiry, unix s
-- ARGV[3i-1..3i+1]  of task i: id, owner token, SHA-1 of its message
-- Returns     for each task 1 renewed, 0 lost to somebody else
-- Atomic because   between check and renewal the task could change hands, and two workers would hold it.
-- A missing lease of a task still owned is restored: eviction and failover may lose one without the other.
local results = {}
for i = 1, #KEYS - 1 do
  local a = 3 * i - 1
  local fields = redis.pcall('HMGET', KEYS[i + 1], 'state', 'owner', 'msg')
  if fields[1] == 'active' and (fields[2] or '') == ARGV[a + 1] and fields[3]
      and redis.sha1hex(fields[3]) == ARGV[a + 2] then
    redis.call('ZADD', KEYS[1], ARGV[1], ARGV[a])
    results[i] = 1
  else
    results[i] = 0
  end
end
return results
