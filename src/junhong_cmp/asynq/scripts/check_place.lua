-- Holds a stretch of one list or set of a queue against the tasks its ids stand for, and mends what is wrong.
--
-- KEYS[1..9], ARGV[1..3]  see _places.lua
-- ARGV[4]  1 = mend, 0 = only tell
-- ARGV[5]  pending, active, lease, scheduled, retry, archived, completed or aggregating; ARGV[6] the group
-- ARGV[7..8]  first and last rank to look at
-- Returns  {ids looked at, ids removed, {fault, id, remedy, …}}; fewer looked at than there are = come again
-- Atomic because   an id is judged by its task and by other places, which must not move meanwhile.
-- An id whose task says another state is dropped if the place of that state holds it too; else the task is
-- brought in line: scripts that broke off (they are not rolled back) leave the id right and the state old.
local MEND, PLACE, GROUP = ARGV[4] == '1', ARGV[5], ARGV[6]
local MOST_COMPARISONS = 100000
local is_list = PLACE == 'pending' or PLACE == 'active'
local key = is_list and (PLACE == 'pending' and PENDING or ACTIVE)
    or PLACE == 'lease' and LEASE or SORTED[PLACE] or group_key(GROUP)
local own_state = PLACE == 'lease' and 'active' or PLACE
local ids = redis.call(is_list and 'LRANGE' or 'ZRANGE', key, ARGV[7], ARGV[8])
local findings, seen, removed, comparisons = {}, 0, 0, 0

local function tell(fault, id, remedy)
  findings[#findings + 1] = fault
  findings[#findings + 1] = id
  findings[#findings + 1] = remedy
end

local function remove(id)
  if is_list then
    redis.call('LREM', key, -1, id)
    comparisons = comparisons + redis.call('LLEN', key)
  elseif PLACE == 'aggregating' then
    leave_group(id, GROUP)
  else
    redis.call('ZREM', key, id)
  end
  removed = removed + 1
end

local function check(id)
  local state, group = read_task(id)
  if not state then
    tell('ghost', id, 'dropped')
    if MEND then
      remove(id)
      if redis.call('TYPE', task_key(id)).ok == 'hash' then
        redis.call('DEL', task_key(id))
      end
    end
  elseif state ~= own_state or (PLACE == 'aggregating' and group ~= GROUP) then
    comparisons = comparisons + (state == 'pending' and redis.call('LLEN', PENDING) or 0)
    if PLACE == 'lease' or is_in_place(id, state, group) then
      tell('misplaced', id, 'dropped')
      if MEND then
        remove(id)
      end
    else
      tell('misplaced', id, 'adopted')
      if MEND then
        redis.call('HSET', task_key(id), 'state', own_state)
        if PLACE == 'aggregating' then
          redis.call('HSET', task_key(id), 'group', GROUP)
        end
      end
    end
  end
  if PLACE == 'active' and state == 'active' and not redis.call('ZSCORE', LEASE, id) then
    tell('active_without_lease', id, 'leased')
    if MEND then
      redis.call('ZADD', LEASE, NOW_S, id) -- ends now: its worker may renew it, else it is recovered
    end
  elseif PLACE == 'lease' and state == 'active' and not redis.call('LPOS', ACTIVE, id) then
    tell('lease_without_active', id, 'listed')
    comparisons = comparisons + redis.call('LLEN', ACTIVE)
    if MEND then
      redis.call('LPUSH', ACTIVE, id)
    end
  end
end

for _, id in ipairs(ids) do
  if comparisons > MOST_COMPARISONS then
    break
  end
  check(id)
  seen = seen + 1
end
return { seen, removed, findings }
