-- Reads who leads and who waits; changes nothing.
--
-- KEYS[1] lease     HASH
-- KEYS[2] standbys  ZSET of JSON text -> until, unix ms
-- ARGV none
--
-- Returns {now in unix ms, {field, value, ...}, {JSON text, ...}}.
--
-- Atomic so that lease, standbys and time belong together.
local now = now_ms()
local lease, standbys = {}, {}
if is_kind(KEYS[1], 'hash') then
  lease = redis.call('HGETALL', KEYS[1])
end
if is_kind(KEYS[2], 'zset') then
  standbys = redis.call('ZRANGEBYSCORE', KEYS[2], '(' .. text(now), '+inf')
end
return {text(now), lease, standbys}
