-- Brings active and lease in line with each other and with the task hashes.
--
-- KEYS[1..2]  asynq:{q}: active, lease
-- ARGV[1]  prefix of task hashes; the ids, and so their keys, are only known here
-- ARGV[2]  now, unix s
-- ARGV[3]  most entries to look at; longer lists are left alone, as half a view of them proves nothing
-- Returns  {leases restored, active entries restored, leases dropped, ghosts dropped}
-- Atomic because   each entry is judged by the other two places, which must not move meanwhile.
local most = tonumber(ARGV[3])
if redis.call('LLEN', KEYS[1]) > most or redis.call('ZCARD', KEYS[2]) > most then
  return { 0, 0, 0, 0 }
end
local function is_active(id)
  local key = ARGV[1] .. id
  local size = redis.pcall('HSTRLEN', key, 'msg')
  if type(size) ~= 'number' or size == 0 then
    return false, false
  end
  return redis.call('HGET', key, 'state') == 'active', true
end
local leases_restored, actives_restored, leases_dropped, ghosts = 0, 0, 0, 0
local seen = {}
for _, id in ipairs(redis.call('LRANGE', KEYS[1], 0, -1)) do
  local in_work, exists = is_active(id)
  if not in_work or seen[id] then
    redis.call('LREM', KEYS[1], -1, id)
    ghosts = ghosts + 1
  elseif not redis.call('ZSCORE', KEYS[2], id) then
    redis.call('ZADD', KEYS[2], ARGV[2], id)
    leases_restored = leases_restored + 1
  end
  seen[id] = exists
end
for _, id in ipairs(redis.call('ZRANGE', KEYS[2], 0, -1)) do
  if not is_active(id) then
    redis.call('ZREM', KEYS[2], id)
    leases_dropped = leases_dropped + 1
  elseif not seen[id] then
    redis.call('LPUSH', KEYS[1], id)
    actives_restored = actives_restored + 1
  end
end
return { leases_restored, actives_restored, leases_dropped, ghosts }
