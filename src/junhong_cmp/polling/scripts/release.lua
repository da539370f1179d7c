-- Releases in-flight slots of one account, each only by the lease that took it.
--
-- KEYS[1] slots  ZSET "<kind>:<card>" -> end of lease, unix ms: the first card of each call
-- KEYS[2] riders ZSET likewise: the other cards of calls about several
-- ARGV    member, lease, member, lease, ...
--
-- Returns how many were released.
--
-- Atomic because a slot whose lease ran out may have been taken by somebody else meanwhile.
local released = 0
for i = 1, #ARGV, 2 do
  for _, key in ipairs(KEYS) do
    local lease = redis.call('ZSCORE', key, ARGV[i])
    if lease and tonumber(lease) == tonumber(ARGV[i + 1]) then
      released = released + redis.call('ZREM', key, ARGV[i])
      break
    end
  end
end
return released
