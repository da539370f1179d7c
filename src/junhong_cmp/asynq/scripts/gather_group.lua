-- Takes the waiting tasks of a group into an aggregation set of their own, if it is time to.
--
-- KEYS[1..4]  asynq:{q}:g:<group>, asynq:{q}:g:<group>:<set id>, asynq:{q}: aggregation_sets, groups
-- ARGV[1]  prefix of task hashes; the ids, and so their keys, are only known here
-- ARGV[2]  group
-- ARGV[3]  most tasks of a set, at which it is time (0 = any number, never by number)
-- ARGV[4]  it is time if the oldest task was added at or before this (unix s, 0 = never by age)
-- ARGV[5]  it is time if the newest task was added at or before this (unix s)
-- ARGV[6]  deadline of the set, unix s
-- ARGV[7]  most bytes of a message
-- Returns  {id, msg, …}; msg is '' for one that is too large, ids without task are left out; {} = not yet
-- Atomic because   a task must always be in the group or in the set, and the set must be known by its
--                  deadline, or a crash would leave it where nobody looks.
local group, set = KEYS[1], KEYS[2]
local size = redis.call('ZCARD', group)
if size == 0 then
  redis.call('SREM', KEYS[4], ARGV[2])
  return {}
end
local most, oldest_limit = tonumber(ARGV[3]), tonumber(ARGV[4])
local function score_at(rank)
  return tonumber(redis.call('ZRANGE', group, rank, rank, 'WITHSCORES')[2])
end
if not (most > 0 and size >= most) and not (oldest_limit > 0 and score_at(0) <= oldest_limit)
    and score_at(-1) > tonumber(ARGV[5]) then
  return {}
end
redis.call('ZADD', KEYS[3], ARGV[6], set)
local last = most > 0 and most - 1 or -1
local entries = redis.call('ZRANGE', group, 0, last, 'WITHSCORES')
local found = {}
for i = 1, #entries, 2 do
  local id = entries[i]
  redis.call('ZADD', set, entries[i + 1], id)
  local bytes = redis.pcall('HSTRLEN', ARGV[1] .. id, 'msg')
  if type(bytes) == 'number' and bytes > 0 then
    found[#found + 1] = id
    found[#found + 1] = bytes <= tonumber(ARGV[7]) and redis.call('HGET', ARGV[1] .. id, 'msg') or ''
  end
end
redis.call('ZREMRANGEBYRANK', group, 0, last)
if redis.call('ZCARD', group) == 0 then
  redis.call('SREM', KEYS[4], ARGV[2])
end
return found
