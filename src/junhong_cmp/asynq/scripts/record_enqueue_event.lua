-- Adds a firing to the history of a cron entry and keeps the newest.
--
-- KEYS[1]  asynq:scheduler_history:<entry>
-- ARGV[1]  now, unix s
-- ARGV[2]  encoded SchedulerEnqueueEvent
-- ARGV[3]  most events to keep
-- Returns  nothing
-- Atomic because   a crash in between would leave the history too long until the next firing.
redis.call('ZADD', KEYS[1], ARGV[1], ARGV[2])
redis.call('ZREMRANGEBYRANK', KEYS[1], 0, -(tonumber(ARGV[3]) + 1))
return redis.status_reply('OK')
