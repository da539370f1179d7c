-- Takes notices off the board, the most urgent first, for the leader of one term.
--
-- KEYS[1] notices  ZSET shard tag -> earliest due, unix ms
-- KEYS[2] fence    the epoch the board obeys
-- ARGV[1] epoch of the caller   ARGV[2] limit
--
-- Returns {"FENCED", fence or ""} when the epoch is not the board's ("": none, or it is no epoch), else
-- {"OK", now, {tag, due, tag, due, ...}}.
--
-- Atomic because a notice posted between the look and the removal would be lost, and because a past
-- leader must not take what is meant for the present one.
local fence = redis.call('GET', KEYS[2])
if fence ~= ARGV[1] then
  local is_epoch = fence and string.find(fence, '^%d+$') and tonumber(fence) < 2 ^ 53
  return {'FENCED', is_epoch and fence or ''}
end
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local last = tonumber(ARGV[2]) - 1
local taken = redis.call('ZRANGE', KEYS[1], 0, last, 'WITHSCORES')
if #taken > 0 then
  redis.call('ZREMRANGEBYRANK', KEYS[1], 0, last)
end
return {'OK', string.format('%.0f', now), taken}
