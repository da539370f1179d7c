-- Claims the due cards of one shard, oldest first, for the leader of one term.
--
-- KEYS[1] due    ZSET card id -> due, unix ms
-- KEYS[2] fence  the epoch the shard obeys
-- KEYS[3] claim  the highest claim the shard has given
-- ARGV[1] epoch of the caller   ARGV[2] limit   ARGV[3] visibility, ms
-- ARGV[4] a claim of this shard the caller knows of, 0 for none
--
-- Returns {"FENCED", fence or ""} when the epoch is not the shard's ("": none, or it is no epoch) or the
-- shard has forgotten a claim (""), as after the promotion of a replica that lagged behind; else
-- {"OK", now, next due or "", claim, {card, due, card, due, ...}, {foreign member, ...}}.
-- One claim serves the whole batch: it exceeds every claim the shard ever gave, so it is new to
-- each card ("0" when nothing was due). Members that are no card ids are taken out and reported.
--
-- Atomic because the fence must hold for the very writes it allows, and because a card read as
-- due by two callers would be claimed twice.
local fence = redis.call('GET', KEYS[2])
if fence ~= ARGV[1] then
  local is_epoch = fence and string.find(fence, '^%d+$') and tonumber(fence) < 2 ^ 53
  return {'FENCED', is_epoch and fence or ''}
end
local highest = tonumber(redis.call('GET', KEYS[3])) or 0
if highest < tonumber(ARGV[4]) then
  return {'FENCED', ''}
end
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local now_text = string.format('%.0f', now)
local cards, foreign, moved = {}, {}, {}
local claim = '0'

local function move()
  if #moved > 0 then
    redis.call('ZADD', KEYS[1], unpack(moved))
    moved = {}
  end
end

local due = {}
if tonumber(ARGV[2]) > 0 then
  due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now_text, 'WITHSCORES', 'LIMIT', 0, ARGV[2])
end
if #due > 0 then
  claim = string.format('%.0f', math.max(now + tonumber(ARGV[3]), highest + 1))
  for i = 1, #due, 2 do
    local card = due[i]
    if string.find(card, '^[1-9]%d*$') then
      moved[#moved + 1] = claim
      moved[#moved + 1] = card
      cards[#cards + 1] = card
      cards[#cards + 1] = string.format('%.0f', math.max(0, tonumber(due[i + 1])))
      if #moved == 1000 then -- Lua's stack bounds what unpack can return
        move()
      end
    else
      redis.call('ZREM', KEYS[1], card)
      foreign[#foreign + 1] = card
    end
  end
  move()
  if #cards > 0 then
    redis.call('SET', KEYS[3], claim)
  end
end
local first = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
local next_due = ''
if first[2] and tonumber(first[2]) < 2 ^ 53 then
  next_due = string.format('%.0f', math.max(0, tonumber(first[2])))
end
return {'OK', now_text, next_due, claim, cards, foreign}
