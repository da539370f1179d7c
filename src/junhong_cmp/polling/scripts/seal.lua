-- Raises the fence of one shard to the epoch of a new term.
--
-- KEYS[1] fence  the epoch the shard obeys
-- ARGV[1] epoch
--
-- Returns the fence that holds now as a string: the caller's epoch, or a higher one that refuses it.
--
-- A fence that is no epoch obeys nobody and is replaced.
--
-- Atomic because of two leaders sealing at once the higher epoch must win, in any order.
local fence = redis.call('GET', KEYS[1])
local is_epoch = fence and string.find(fence, '^%d+$') and tonumber(fence) < 2 ^ 53
if is_epoch and tonumber(fence) > tonumber(ARGV[1]) then
  return fence
end
redis.call('SET', KEYS[1], ARGV[1])
return ARGV[1]
