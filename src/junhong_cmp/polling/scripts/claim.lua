-- Claims the due cards of one shard, oldest first, for the leader of one term.
--
-- KEYS[1] due    ZSET card id -> due, unix ms
-- KEYS[2] fence  the epoch the shard obeys
-- KEYS[3] claim  the highest claim the shard has given
-- ARGV[1] epoch of the caller   ARGV[2] limit   ARGV[3] visibility, ms
--
-- Returns {"FENCED", fence or ""} when the epoch is not the shard's ("": none, or it is no epoch), else
-- {"OK", now, next due or "", claim, {card, due, card, due, ...}, {foreign member, ...}}.
-- One claim serves the whole batch: it exceeds every claim the shard ever gave, so it is new to
-- each card. Members that are no card ids are taken out and reported.
--
-- Atomic because the fence must hold for the very writes it allows, and because a card read as
-- due by two callers would be claimed twice.
local fence = redis.call('GET', KEYS[2])
if fence ~= ARGV[1] then
  local is_epoch = fence and string.find(fence, '^%d+$') and tonumber(fence) < 2 ^ 53
  return {'FENCED', is_epoch and fence or ''}
end
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local cards, foreign = {}, {}
local claim = math.max(now + tonumber(ARGV[3]), (tonumber(redis.call('GET', KEYS[3])) or 0) + 1)
local text = string.format('%.0f', claim)
if tonumber(ARGV[2]) > 0 then
  local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now),
    'WITHSCORES', 'LIMIT', 0, ARGV[2])
  for i = 1, #due, 2 do
    if string.find(due[i], '^[1-9]%d*$') then
      redis.call('ZADD', KEYS[1], text, due[i])
      cards[#cards + 1] = due[i]
      cards[#cards + 1] = string.format('%.0f', math.max(0, tonumber(due[i + 1])))
    else
      redis.call('ZREM', KEYS[1], due[i])
      foreign[#foreign + 1] = due[i]
    end
  end
end
if #cards > 0 then
  redis.call('SET', KEYS[3], text)
end
local first = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
local next_due = ''
if first[2] and tonumber(first[2]) < 2 ^ 53 then
  next_due = string.format('%.0f', math.max(0, tonumber(first[2])))
end
return {'OK', string.format('%.0f', now), next_due, text, cards, foreign}
