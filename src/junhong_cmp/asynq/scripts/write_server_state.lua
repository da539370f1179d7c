-- Writes what one server shows of itself, replacing all it showed before.
--
-- KEYS[1]  asynq:servers:{host:pid:id}
-- KEYS[2]  asynq:workers:{host:pid:id}
-- ARGV[1]  time to live, s
-- ARGV[2]  encoded ServerInfo
-- ARGV[2i+1..2i+2]  task id and encoded WorkerInfo of worker i
-- Returns  nothing
-- Atomic because   a reader in between would see a busy server without workers.
redis.call('SETEX', KEYS[1], ARGV[1], ARGV[2])
redis.call('DEL', KEYS[2])
for i = 3, #ARGV, 2 do
  redis.call('HSET', KEYS[2], ARGV[i], ARGV[i + 1])
end
redis.call('EXPIRE', KEYS[2], ARGV[1])
return redis.status_reply('OK')
