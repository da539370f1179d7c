-- Gives the lease of one term up. The highest epoch stays, so that the next one exceeds it.
--
-- KEYS[1] lease  HASH
-- ARGV[1] holder   ARGV[2] epoch
--
-- Returns 1, or 0 when the lease is not the caller's any more.
--
-- Atomic because a late release must not take the lease from the next holder.
local lease = {}
if is_kind(KEYS[1], 'hash') then
  lease = redis.call('HMGET', KEYS[1], 'holder', 'epoch')
end
if lease[1] ~= ARGV[1] or lease[2] ~= ARGV[2] then
  return 0
end
redis.call('HDEL', KEYS[1], 'holder', 'name', 'host', 'pid', 'seq', 'ttl', 'since', 'expires')
redis.call('HSET', KEYS[1], 'renewed', text(now_ms()))
return 1
