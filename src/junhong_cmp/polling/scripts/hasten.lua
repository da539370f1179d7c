-- Brings waiting cards of one shard forward; a card that may be claimed is left alone.
--
-- KEYS[1] due    ZSET card id -> due, unix ms
-- KEYS[2] claim  the highest claim the shard has given
-- ARGV    card, due or "" for now, card, due or "", ...
--
-- Returns {1 or 0, ...}: one flag a card, 0 = not there, due no later anyway, or perhaps claimed.
-- Only a score beyond the highest claim is certainly a due time and not a claim; what lies below
-- comes round within one claim's time without help.
--
-- Atomic because a claim given between the look and the write would be broken.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local highest = tonumber(redis.call('GET', KEYS[2])) or 0
local reply = {}
for i = 1, #ARGV, 2 do
  local score = tonumber(redis.call('ZSCORE', KEYS[1], ARGV[i]))
  local due = tonumber(ARGV[i + 1]) or now
  if score and score > highest and score > due then
    redis.call('ZADD', KEYS[1], 'XX', string.format('%.0f', due), ARGV[i])
    reply[#reply + 1] = 1
  else
    reply[#reply + 1] = 0
  end
end
return reply
