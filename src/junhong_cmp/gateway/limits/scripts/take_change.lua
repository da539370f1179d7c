-- Takes the right to change a card, unless it was changed too recently.
--
-- KEYS[1] last change STRING: the id of the request that holds the right
-- ARGV[1] id of the request
-- ARGV[2] the card's rest after a change, ms
--
-- Returns 0 when the right is taken, else for how many ms the card still rests.
--
-- Atomic because of two senders exactly one may go on. The right runs out by itself: a sender that dies
-- leaves the card resting as if it had been changed, which the carrier may well have done.
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  return 0
end
return math.max(redis.call('PTTL', KEYS[1]), 1)
