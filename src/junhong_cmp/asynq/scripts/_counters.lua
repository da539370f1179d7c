-- Shared: the counters of a queue. Prepended to ack.lua.
-- KEYS, ARGV and returns are those of the script it is prepended to; atomic as a part of it.
-- They come after the tasks have moved, and by pcall: a counter that holds garbage never blocks an ack.

local function count_day(key, n, expires_at)
  if n > 0 and redis.pcall('INCRBY', key, n) == n then
    redis.call('EXPIREAT', key, expires_at)
  end
end

-- At the end of int64 both totals start anew together, so that their ratio keeps a meaning.
local function count_total(processed_key, failed_key, processed, failed)
  if processed == 0 then
    return
  end
  if type(redis.pcall('INCRBY', processed_key, processed)) == 'table' then
    redis.call('SET', processed_key, processed)
    redis.call('SET', failed_key, failed)
  elseif failed > 0 then
    redis.pcall('INCRBY', failed_key, failed)
  end
end
