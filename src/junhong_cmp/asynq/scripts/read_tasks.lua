-- Reads tasks with all that is known about them.
--
-- KEYS[1..9], ARGV[1..3]  see _places.lua
-- ARGV[4]  state; '' = the one task ARGV[5], whatever its state
-- ARGV[5]  the id, or the group, for `aggregating`
-- ARGV[6..7]  first and last rank to read, oldest first
-- Returns  {id, state, score in its place ('' = none), msg, result, pending_since, quarantined, …}
-- Atomic because   a task that moves while a page is read would be shown in a state it never had.
local wanted, first, last = ARGV[4], tonumber(ARGV[6]), tonumber(ARGV[7])
local ids = {}
if wanted == '' then
  ids = { ARGV[5] }
elseif wanted == 'pending' or wanted == 'active' then
  local found = redis.call('LRANGE', wanted == 'pending' and PENDING or ACTIVE, -last - 1, -first - 1)
  for i = #found, 1, -1 do
    ids[#ids + 1] = found[i]
  end
else
  ids = redis.call('ZRANGE', SORTED[wanted] or group_key(ARGV[5]), first, last)
end
local rows = {}
for _, id in ipairs(ids) do
  local state, group = read_task(id)
  if state then
    local place = SORTED[state] or state == 'active' and LEASE or state == 'aggregating' and group_key(group)
    local fields = redis.call('HMGET', task_key(id), 'msg', 'result', 'pending_since', 'quarantined')
    local row = { id, state, place and redis.call('ZSCORE', place, id) or '', fields[1] }
    for i = 2, 4 do
      row[#row + 1] = fields[i] or ''
    end
    rows[#rows + 1] = row
  end
end
return rows
