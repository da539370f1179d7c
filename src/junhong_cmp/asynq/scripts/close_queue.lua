-- Pauses a queue that is about to be deleted, unless something in it forbids that.
--
-- KEYS[1..9], ARGV[1..3]  see _places.lua; KEYS[10] asynq:{q}:paused
-- ARGV[4]  1 = only tasks in work forbid it; 0 = any task does
-- Returns  {1 closed | 0 refused, what is in work, what else there is}
-- Atomic because   a worker could take a task between the look and the pause.
-- An aggregation set past its deadline is a leftover: whoever worked on it is gone.
local active = redis.call('LLEN', ACTIVE) + redis.call('ZCOUNT', SETS, '(' .. NOW_S, '+inf')
local others = redis.call('LLEN', PENDING) + redis.call('SCARD', GROUPS) + redis.call('ZCARD', SETS)
for _, key in pairs(SORTED) do
  others = others + redis.call('ZCARD', key)
end
if active > 0 or (others > 0 and ARGV[4] == '0') then
  return { 0, active, others }
end
redis.call('SET', KEYS[10], NOW_S)
return { 1, active, others }
