-- Shared: keep the archive within age and size. Needs _lock.lua; prepended to ack.lua.
-- KEYS, ARGV and returns are those of the script it is prepended to; atomic as a part of it.
-- Hashes and locks go with the ids. At most 1 000 ids a cause and call: long lists shrink over several
-- calls instead of blocking the server, and no list is ever passed to unpack.

local TRIM_AT_ONCE = 1000

local function trim_archived(archived, prefix, cutoff, most)
  local function delete(ids)
    for _, id in ipairs(ids) do
      delete_task(prefix, prefix .. 't:' .. id, id)
      redis.call('ZREM', archived, id)
    end
  end
  delete(redis.call('ZRANGEBYSCORE', archived, '-inf', cutoff, 'LIMIT', 0, TRIM_AT_ONCE))
  local excess = math.min(redis.call('ZCARD', archived) - most, TRIM_AT_ONCE)
  if excess > 0 then
    delete(redis.call('ZRANGE', archived, 0, excess - 1))
  end
end
