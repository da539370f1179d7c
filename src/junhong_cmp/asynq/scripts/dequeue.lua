-- Takes up to n pending tasks, oldest first, and leases them.
--
-- KEYS[1..5]  asynq:{q}: pending, active, lease, paused, archived
-- ARGV[1]  prefix of task hashes; the ids, and so their keys, are only known here
-- ARGV[2]  n
-- ARGV[3]  now, unix s
-- ARGV[4]  lease expiry, unix s
-- ARGV[5]  owner token
-- ARGV[6]  most bytes of a message
-- Returns  {paused 0|1, {id, msg, …}, {id, reason, …} quarantined, {id, …} ghosts dropped}
-- Atomic because   an id must never be in neither list, and active, lease and state must agree.
local pending, active, lease, archived = KEYS[1], KEYS[2], KEYS[3], KEYS[5]
local prefix, count, now = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local taken, quarantined, ghosts = {}, {}, {}
if redis.call('EXISTS', KEYS[4]) == 1 then
  return { 1, taken, quarantined, ghosts }
end
-- A key of a wrong type must fail here, before the first write.
redis.call('LLEN', active)
redis.call('ZCARD', lease)
redis.call('ZCARD', archived)
-- Ghosts and misfits do not count, but the loop stays bounded whatever the list holds.
for _ = 1, count + 1000 do
  if #taken >= 2 * count then
    break
  end
  local id = redis.call('RPOPLPUSH', pending, active)
  if not id then
    break
  end
  local key = prefix .. id
  local size = redis.pcall('HSTRLEN', key, 'msg')
  local drop = true
  if type(size) == 'table' then
    quarantined[#quarantined + 1] = id
    quarantined[#quarantined + 1] = 'type'
  elseif size == 0 then
    redis.call('DEL', key)
    ghosts[#ghosts + 1] = id
  elseif size > tonumber(ARGV[6]) then
    redis.call('HDEL', key, 'pending_since', 'owner')
    redis.call('HSET', key, 'state', 'archived', 'quarantined', 'size')
    redis.call('ZADD', archived, now, id)
    quarantined[#quarantined + 1] = id
    quarantined[#quarantined + 1] = 'size'
  else
    local fields = redis.call('HMGET', key, 'msg', 'state')
    -- An id twice in pending: the first copy is in work, the second must not be.
    if not (fields[2] == 'active' and redis.call('ZSCORE', lease, id)) then
      drop = false
      redis.call('HSET', key, 'state', 'active', 'owner', ARGV[5])
      redis.call('HDEL', key, 'pending_since')
      redis.call('ZADD', lease, ARGV[4], id)
      taken[#taken + 1] = id
      taken[#taken + 1] = fields[1]
    else
      ghosts[#ghosts + 1] = id
    end
  end
  if drop then
    redis.call('LREM', active, 1, id)
  end
end
return { 0, taken, quarantined, ghosts }
