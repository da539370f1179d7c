-- Takes the lease if it is free, lapsed, the caller's own, or dead by the caller's observation.
--
-- KEYS[1] lease     HASH
-- KEYS[2] standbys  ZSET of JSON text -> until, unix ms
-- ARGV[1] holder    ARGV[2] name   ARGV[3] host   ARGV[4] pid   ARGV[5] ttl, ms
-- ARGV[6] observed  "holder:epoch:seq" that stood unchanged for a whole ttl, or ""
-- ARGV[7] floor     an epoch the new one must exceed
-- ARGV[8] the caller's entry among the standbys   ARGV[9] how long it counts, ms
--
-- Returns {"ELECTED", epoch, gap in ms since the lease was last renewed or released, or ""}, or
-- {"HELD", now, field, value, ...} after having entered the caller among the standbys.
--
-- The epoch is max(previous + 1, floor + 1, now), so it grows even when the hash was lost. `expires` is
-- compared with the server's clock; should that step back, `observed` lets a dead holder be followed
-- all the same.
--
-- Atomic because of several candidates one must win, each with an epoch of its own.
local now = now_ms()
if not is_kind(KEYS[1], 'hash') then
  redis.call('DEL', KEYS[1])
end
if not is_kind(KEYS[2], 'zset') then
  redis.call('DEL', KEYS[2])
end
local lease = redis.call('HMGET', KEYS[1], 'holder', 'epoch', 'seq', 'expires', 'renewed')
local holder, expires = lease[1] or '', whole(lease[4])
local state = holder .. ':' .. text(whole(lease[2])) .. ':' .. text(whole(lease[3]))
if holder ~= '' and holder ~= ARGV[1] and expires > now and state ~= ARGV[6] then
  redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', text(now))
  redis.call('ZADD', KEYS[2], text(now + tonumber(ARGV[9])), ARGV[8])
  redis.call('PEXPIRE', KEYS[2], ARGV[9])
  local reply = {'HELD', text(now)}
  for _, part in ipairs(redis.call('HGETALL', KEYS[1])) do
    reply[#reply + 1] = part
  end
  return reply
end
local epoch = text(math.max(whole(lease[2]) + 1, whole(ARGV[7]) + 1, now))
redis.call('HSET', KEYS[1], 'holder', ARGV[1], 'name', ARGV[2], 'host', ARGV[3], 'pid', ARGV[4],
  'epoch', epoch, 'seq', '1', 'ttl', ARGV[5], 'since', text(now), 'renewed', text(now),
  'expires', text(now + tonumber(ARGV[5])))
redis.call('ZREM', KEYS[2], ARGV[8])
local gap = ''
if lease[5] then
  gap = text(math.max(0, now - whole(lease[5])))
end
return {'ELECTED', epoch, gap}
