-- Runs, archives or deletes the next tasks of one state, oldest first.
--
-- KEYS[1..9], ARGV[1..3]  see _places.lua; ARGV[4..6] see _operations.lua
-- ARGV[7]  state; ARGV[8] group, for `aggregating`
-- ARGV[9]  how many entries to pass over first; ARGV[10] how many to take at most
-- Returns  {tasks done, ids without a task dropped, entries left in place, tasks trimmed from the archive}
-- Atomic because   the id must never be in two places or in none, and a worker may take it at any time.
-- An entry whose task is in another state stays where it is: which of the two is right is for the check to
-- say.
local state, group, offset, count = ARGV[7], ARGV[8], tonumber(ARGV[9]), tonumber(ARGV[10])
local ids = {}
if state == 'pending' then
  local found = redis.call('LRANGE', PENDING, -offset - count, -offset - 1)
  for i = #found, 1, -1 do
    ids[#ids + 1] = found[i]
  end
else
  ids = redis.call('ZRANGE', SORTED[state] or group_key(group), offset, offset + count - 1)
end
local done, ghosts, left = 0, 0, 0
for _, id in ipairs(ids) do
  local actual = read_task(id)
  if not actual then
    leave_place(id, state, group)
    redis.call('DEL', task_key(id))
    ghosts = ghosts + 1
  elseif actual ~= state then
    left = left + 1
  else
    leave_place(id, state, group)
    operate(id)
    done = done + 1
  end
end
return { done, ghosts, left, trim_after_operation() }
