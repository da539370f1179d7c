-- Reads tasks whose lease ran out, oldest first; leases that stand for nothing are dropped on the way.
--
-- KEYS[1..2]  asynq:{q}: lease, active
-- ARGV[1]  prefix of task hashes; the ids, and so their keys, are only known here
-- ARGV[2]  latest expiry, unix s
-- ARGV[3]  most leases to look at
-- ARGV[4]  most bytes of a message
-- Returns  {id, expiry, msg, owner, recoveries (unix s, spaced), …}; msg is '' for one that is too large
-- Atomic because   a lease is dropped for what its hash says: both must be read together.
local entries = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[2], 'WITHSCORES', 'LIMIT', 0, ARGV[3])
local found = {}
for i = 1, #entries, 2 do
  local id = entries[i]
  local key = ARGV[1] .. id
  local state = redis.pcall('HGET', key, 'state')
  local size = redis.pcall('HSTRLEN', key, 'msg')
  if type(size) ~= 'number' or size == 0 then
    redis.call('ZREM', KEYS[1], id)
    redis.call('LREM', KEYS[2], -1, id)
  elseif state ~= 'active' then
    redis.call('ZREM', KEYS[1], id)
  else
    local msg = ''
    if size <= tonumber(ARGV[4]) then
      msg = redis.call('HGET', key, 'msg')
    end
    found[#found + 1] = id
    found[#found + 1] = entries[i + 1]
    found[#found + 1] = msg
    found[#found + 1] = redis.call('HGET', key, 'owner') or ''
    found[#found + 1] = redis.call('HGET', key, 'recoveries') or ''
  end
end
return found
