-- Writes the cron entries of one scheduler, replacing all it showed before.
--
-- KEYS[1]  asynq:schedulers:{host:pid:id}
-- ARGV[1]  time to live, s
-- ARGV[2…] encoded SchedulerEntry
-- Returns  nothing
-- Atomic because   a reader in between would see a part of the entries.
redis.call('DEL', KEYS[1])
for i = 2, #ARGV do
  redis.call('RPUSH', KEYS[1], ARGV[i])
end
redis.call('EXPIRE', KEYS[1], ARGV[1])
return redis.status_reply('OK')
