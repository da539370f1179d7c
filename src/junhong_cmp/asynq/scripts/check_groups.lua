-- Finds what aggregations that broke off have left, and gives the tasks back to their groups.
--
-- KEYS[1..9], ARGV[1..3]  see _places.lua
-- ARGV[4]  1 = mend, 0 = only tell
-- ARGV[5]  most tasks to move
-- ARGV[6..]  keys of groups and aggregation sets
-- Returns  {keys looked at, {fault, key, remedy, …}}; fewer looked at than given = come again
-- Atomic because   an aggregator may begin or end meanwhile, and a task must be in the group or in the set.
-- A set is left over when its deadline has passed, or when nobody knows it: its key ends in a UUID and it is
-- neither registered as a set nor as a group.
local MEND, left = ARGV[4] == '1', tonumber(ARGV[5])
local findings, seen = {}, 0
local UUID = '^(.*):%x+%-%x+%-%x+%-%x+%-%x+$'

local function tell(fault, key, remedy)
  findings[#findings + 1] = fault
  findings[#findings + 1] = key
  findings[#findings + 1] = remedy
end

-- Returns true when the set is empty.
local function give_back(set, group)
  local members = redis.call('ZRANGE', set, 0, left - 1, 'WITHSCORES')
  for i = 1, #members, 2 do
    if read_task(members[i]) then
      redis.call('ZADD', group_key(group), members[i + 1], members[i])
      redis.call('SADD', GROUPS, group)
    end
    redis.call('ZREM', set, members[i])
    left = left - 1
  end
  return redis.call('EXISTS', set) == 0
end

-- Returns false if there is more to do on this key.
local function check(key)
  local name = string.sub(key, #group_key('') + 1)
  local deadline = redis.call('ZSCORE', SETS, key)
  if deadline and tonumber(deadline) > tonumber(NOW_S) then
    return true
  end
  local is_group = redis.call('SISMEMBER', GROUPS, name) == 1
  local size = redis.pcall('ZCARD', key)
  if type(size) ~= 'number' then
    tell('foreign', key, 'kept')
    return true
  end
  local group = string.match(name, deadline and '^(.*):[^:]*$' or UUID)
  if deadline or (group and not is_group and size > 0) then
    if not MEND then
      tell('stale_aggregation_set', key, 'requeued')
    elseif not group or give_back(key, group) then
      redis.call('ZREM', SETS, key)
      tell('stale_aggregation_set', key, 'requeued')
    else
      return false
    end
  elseif is_group and size == 0 then
    tell('empty_group', key, 'dropped')
    if MEND then
      redis.call('SREM', GROUPS, name)
    end
  elseif not is_group and size > 0 then
    tell('unlisted_group', key, 'listed')
    if MEND then
      redis.call('SADD', GROUPS, name)
    end
  end
  return true
end

for i = 6, #ARGV do
  if left <= 0 or not check(ARGV[i]) then
    break
  end
  seen = seen + 1
end
return { seen, findings }
