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
local MOST_AT_ONCE = 1000 -- what unpack can take

-- An id that must not stay in active: a ghost, a misfit, or the second copy of a task in work.
local function drop(id)
  redis.call('LREM', active, 1, id)
end

-- Ids are moved before anything else, together: whatever happened then, they would be found in active.
local function take(n)
  local ids = redis.call('RPOP', pending, n)
  if not ids then
    return 0
  end
  redis.call('LPUSH', active, unpack(ids))
  local leases, leased = {}, {}
  for _, id in ipairs(ids) do
    local key = prefix .. id
    local fields = redis.pcall('HMGET', key, 'msg', 'state')
    local msg = fields[1]
    if fields.err then
      drop(id)
      quarantined[#quarantined + 1] = id
      quarantined[#quarantined + 1] = 'type'
    elseif not msg or msg == '' then
      redis.call('DEL', key)
      drop(id)
      ghosts[#ghosts + 1] = id
    elseif #msg > tonumber(ARGV[6]) then
      redis.call('HDEL', key, 'pending_since', 'owner')
      redis.call('HSET', key, 'state', 'archived', 'quarantined', 'size')
      redis.call('ZADD', archived, now, id)
      drop(id)
      quarantined[#quarantined + 1] = id
      quarantined[#quarantined + 1] = 'size'
    elseif fields[2] == 'active' and (leased[id] or redis.call('ZSCORE', lease, id)) then
      drop(id)
      ghosts[#ghosts + 1] = id
    else
      redis.call('HSET', key, 'state', 'active', 'owner', ARGV[5])
      redis.call('HDEL', key, 'pending_since')
      leased[id] = true
      leases[#leases + 1] = ARGV[4]
      leases[#leases + 1] = id
      taken[#taken + 1] = id
      taken[#taken + 1] = msg
    end
  end
  if #leases > 0 then
    redis.call('ZADD', lease, unpack(leases))
  end
  return #ids
end

-- What is dropped does not count, but the loop stays bounded whatever the list holds.
local seen = 0
while #taken < 2 * count and seen < count + MOST_AT_ONCE do
  local moved = take(math.min(count - #taken / 2, MOST_AT_ONCE))
  if moved == 0 then
    break
  end
  seen = seen + moved
end
return { 0, taken, quarantined, ghosts }
