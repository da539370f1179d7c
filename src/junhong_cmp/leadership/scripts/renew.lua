-- Renews the lease of one term.
--
-- KEYS[1] lease  HASH
-- ARGV[1] holder   ARGV[2] epoch   ARGV[3] ttl, ms
--
-- Returns {"RENEWED"}, or {"LOST", now, field, value, ...} when the lease is another's, of another term,
-- or gone. A lease that has lapsed without anybody taking it is renewed.
--
-- Atomic because a lease taken between a look and a write would have two holders.
local now = now_ms()
local lease = {}
if is_kind(KEYS[1], 'hash') then
  lease = redis.call('HMGET', KEYS[1], 'holder', 'epoch', 'seq')
end
if lease[1] ~= ARGV[1] or lease[2] ~= ARGV[2] then
  local reply = {'LOST', text(now)}
  if lease[1] then
    for _, part in ipairs(redis.call('HGETALL', KEYS[1])) do
      reply[#reply + 1] = part
    end
  end
  return reply
end
redis.call('HSET', KEYS[1], 'seq', text(whole(lease[3]) + 1), 'renewed', text(now),
  'expires', text(now + tonumber(ARGV[3])))
return {'RENEWED'}
