-- Returns the right to change a card, if nothing was sent with it.
--
-- KEYS[1] last change STRING: the id of the request that holds the right
-- ARGV[1] id of the request
--
-- Returns 1 when it was returned, 0 when this request does not hold it any more.
--
-- Atomic because the right may have run out and been taken by another request meanwhile.
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0
