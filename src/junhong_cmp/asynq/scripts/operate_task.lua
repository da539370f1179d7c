-- Runs, archives or deletes one task, wherever it is.
--
-- KEYS[1..9], ARGV[1..3]  see _places.lua; ARGV[4..6] see _operations.lua
-- ARGV[7]  id
-- Returns  {code, tasks trimmed from the archive}; 1 done, 0 there is no such task, -1 it is in work,
--          -2 it is already where the operation would put it
-- Atomic because   the id must never be in two places or in none, and a worker may take it at any time.
-- A task no place holds is served too: there is no other way for an operator to get hold of it.
local id = ARGV[7]
local state, group = read_task(id)
if not state then
  if OPERATION == 'delete' and redis.call('DEL', task_key(id)) == 1 then
    return { 1, 0 }
  end
  return { 0, 0 }
end
if state == 'active' and is_in_work(id) or state == 'aggregating' and is_being_aggregated(id, group) then
  return { -1, 0 }
end
if OPERATION == 'run' and state == 'pending' and is_in_place(id, state, group)
    or OPERATION == 'archive' and state == 'archived' and is_in_place(id, state, group) then
  return { -2, 0 }
end
leave_place(id, state, group)
operate(id)
return { 1, trim_after_operation() }
