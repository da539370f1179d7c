-- Fires a cron entry for one scheduled instant, unless any scheduler did so before.
--
-- KEYS[1]  asynq:{q}:cron:<entry>:last   unix s of the instant fired for last
-- KEYS[2]  asynq:{q}:groups
-- KEYS[3]  hash of the task; KEYS[4] its unique lock (KEYS[3] again = none); KEYS[5] where its id goes
-- KEYS[6]  asynq:{q}:cron:<entry>:run    id of the task enqueued last
-- ARGV[1]  the scheduled instant, unix s
-- ARGV[2]  from which `last` on (unix s) it must stem from a clock that ran ahead, and does not count
-- ARGV[3]  now, unix ns
-- ARGV[4]  1 = enqueue; 0 = only note the instant as settled (a missed run that is not made up)
-- ARGV[5..10]  id, msg, state, score, lock time (s), group ('' = none)
-- ARGV[11]  prefix of task hashes, if the entry must not overlap with its previous run ('' = it may)
-- Returns  2 settled before by any scheduler; 3 noted only; 4 noted only, as the previous run has not ended;
--          else as enqueue: 1, 0 or -1
-- Atomic because   `last` and the task must be written together: apart, a crash in between fires twice or
--                  never.
local function text_at(key)
  local text = redis.pcall('GET', key)
  return type(text) == 'string' and text or '' -- a foreign value under our key counts as none
end
local last = tonumber(text_at(KEYS[1]))
local instant = tonumber(ARGV[1])
if last and last >= instant and last < tonumber(ARGV[2]) then
  return 2
end
local ENDED = { archived = true, completed = true }
local function previous_run_lives()
  local state = redis.pcall('HGET', ARGV[11] .. text_at(KEYS[6]), 'state')
  return type(state) == 'string' and not ENDED[state]
end
local result = 3
if ARGV[4] == '1' and ARGV[11] ~= '' and previous_run_lives() then
  result = 4
elseif ARGV[4] == '1' then
  local item = { id = ARGV[5], msg = ARGV[6], state = ARGV[7], score = ARGV[8], ttl = ARGV[9], group = ARGV[10] }
  result = enqueue_task(KEYS[3], KEYS[4], KEYS[5], KEYS[2], item, ARGV[3])
  if result == 1 then
    redis.call('SET', KEYS[6], ARGV[5])
  end
end
redis.call('SET', KEYS[1], ARGV[1])
return result
