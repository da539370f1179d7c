-- Counts the cards of one shard by Redis time.
--
-- KEYS[1] due   ZSET card id -> due, unix ms
-- ARGV[1] age, ms, from which a due card is overdue
--
-- Returns {cards, due, overdue, endless}; endless = with a score no due time or claim reaches.
--
-- Atomic so that the figures agree with each other.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
return {
  redis.call('ZCARD', KEYS[1]),
  redis.call('ZCOUNT', KEYS[1], '-inf', string.format('%.0f', now)),
  redis.call('ZCOUNT', KEYS[1], '-inf', string.format('%.0f', now - tonumber(ARGV[1]))),
  redis.call('ZCOUNT', KEYS[1], string.format('%.0f', 2 ^ 53), '+inf'),
}
