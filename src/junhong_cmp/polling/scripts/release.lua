-- Releases in-flight slots of one account, each only by the lease that took it.
--
-- KEYS[1] slots  ZSET "<kind>:<card>" -> end of lease, unix ms
-- ARGV    member, lease, member, lease, ...
--
-- Returns how many were released.
--
-- Atomic because a slot whose lease ran out may have been taken by somebody else meanwhile.
local released = 0
for i = 1, #ARGV, 2 do
  local lease = redis.call('ZSCORE', KEYS[1], ARGV[i])
  if lease and tonumber(lease) == tonumber(ARGV[i + 1]) then
    released = released + redis.call('ZREM', KEYS[1], ARGV[i])
  end
end
return released
