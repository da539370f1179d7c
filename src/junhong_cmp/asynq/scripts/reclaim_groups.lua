-- Puts the tasks of aggregation sets nobody finished back into their groups.
--
-- KEYS[1..2]  asynq:{q}: aggregation_sets, groups
-- ARGV[1]  prefix of the queue's keys; the sets, groups and ids, and so their keys, are only known here
-- ARGV[2]  sets with a deadline at or before this (unix s)
-- ARGV[3]  most sets
-- ARGV[4]  only this set, whatever its deadline ('' = all that are due)
-- Returns  {sets, tasks} put back
-- Atomic because   a task must never be in neither; and a set must be known until it is empty.
-- The group is entered in the set of groups again: without that no aggregator would look at it.
local sets = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[2], 'LIMIT', 0, ARGV[3])
if ARGV[4] ~= '' then
  sets = redis.call('ZSCORE', KEYS[1], ARGV[4]) and { ARGV[4] } or {}
end
local prefix = ARGV[1] .. 'g:'
local tasks = 0
for _, set in ipairs(sets) do
  -- Only a key of this queue may be touched, whatever somebody put there.
  local group = string.sub(set, 1, #prefix) == prefix and string.match(string.sub(set, #prefix + 1), '^(.*):[^:]*$')
  if group then
    local entries = redis.pcall('ZRANGE', set, 0, -1, 'WITHSCORES')
    local moved = 0
    for i = 1, #entries, 2 do
      local bytes = redis.pcall('HSTRLEN', ARGV[1] .. 't:' .. entries[i], 'msg')
      if type(bytes) == 'number' and bytes > 0 then
        redis.call('ZADD', prefix .. group, entries[i + 1], entries[i])
        moved = moved + 1
      end
    end
    if moved > 0 then
      redis.call('SADD', KEYS[2], group)
    end
    tasks = tasks + moved
    redis.call('DEL', set)
  end
  redis.call('ZREM', KEYS[1], set)
end
return { #sets, tasks }
