-- Reads the figures of one queue.
--
-- KEYS[1..2]   asynq:{q}: pending, active
-- KEYS[3..6]   asynq:{q}: scheduled, retry, archived, completed
-- KEYS[7..10]  asynq:{q}: processed, failed, processed:<day>, failed:<day>
-- KEYS[11..12] asynq:{q}: paused, groups
-- ARGV[1]  prefix of the queue's keys; the oldest id and the groups are only known here
-- Returns  {pending, active, scheduled, retry, archived, completed, processed, failed, processed today,
--           failed today, paused 0|1, aggregating or -1 if there are too many groups to count them here,
--           pending_since of the oldest pending task in ns or '', groups}
-- Atomic because   figures read one by one count a moving task twice or not at all.
-- Wrong types and missing keys count as 0: one damaged queue must not hide the others.
local MOST_GROUPS = 500

local function number(reply)
  return type(reply) == 'number' and reply or 0
end
local info = {}
for i = 1, 2 do
  info[i] = number(redis.pcall('LLEN', KEYS[i]))
end
for i = 3, 6 do
  info[i] = number(redis.pcall('ZCARD', KEYS[i]))
end
for i = 7, 10 do
  local value = redis.pcall('GET', KEYS[i])
  info[i] = type(value) == 'string' and value or '0'
end
info[11] = redis.call('EXISTS', KEYS[11])
info[14] = number(redis.pcall('SCARD', KEYS[12]))
info[12] = info[14] > MOST_GROUPS and -1 or 0
if info[14] > 0 and info[14] <= MOST_GROUPS then
  for _, group in ipairs(redis.call('SMEMBERS', KEYS[12])) do
    info[12] = info[12] + number(redis.pcall('ZCARD', ARGV[1] .. 'g:' .. group))
  end
end
info[13] = ''
local oldest = redis.pcall('LINDEX', KEYS[1], -1)
if type(oldest) == 'string' then
  local since = redis.pcall('HGET', ARGV[1] .. 't:' .. oldest, 'pending_since')
  if type(since) == 'string' then
    info[13] = since
  end
end
return info
