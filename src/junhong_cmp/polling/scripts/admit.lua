-- Admits calls of one account: a rate token for each call, an in-flight slot for each of its cards.
--
-- KEYS[1] slots  ZSET "<kind>:<card>" -> end of lease, unix ms: the first card of each call
-- KEYS[2] riders ZSET likewise: the other cards of calls about several
-- KEYS[3] rate   unix microseconds at which the next call is free
-- KEYS[4] granted  see granted.lua
-- KEYS[5], KEYS[6] what was used of the day's and of the month's budget; only for accounts with one
-- ARGV[1] concurrency, calls   ARGV[2] configured rate, calls a second   ARGV[3] seconds' worth of a burst
-- ARGV[4] longest wait for a token, ms   ARGV[5] slot lease, ms
-- ARGV[6] "card" if budgets count the cards of a call, else they count the call
-- with budgets, of day and month each: limit or "" for none, start, end (unix ms)
-- then of each call: number of members, member, ...
--
-- Returns {lease, integer, ...}: the end of the lease, then for each member the milliseconds to
-- wait before the call (slot taken), or -1 no slot or token in time, -2 the card is in flight,
-- -3 the day's, -4 the month's budget is used up. {"", now, start, end} when now lies outside of a
-- budget's time: nothing was admitted, the caller is to name the right one.
-- A slot is a lease named after the card, so a crashed holder frees it by time, and no card can be
-- in flight twice, even one that was removed and added again during its own poll. What a budget
-- has paid for a call that was never made is not given back: the carrier may count it too.
--
-- Atomic because of two calls asking for the last slot, token or unit of a budget one must be refused.
local time = redis.call('TIME')
local now_us = tonumber(time[1]) * 1000000 + tonumber(time[2])
local now = math.floor(now_us / 1000)
local next_arg = 7
local budgets = {}
for i = 5, #KEYS do
  local start, stop = tonumber(ARGV[next_arg + 1]), tonumber(ARGV[next_arg + 2])
  if now < start or now >= stop then
    return {'', string.format('%.0f', now), ARGV[next_arg + 1], ARGV[next_arg + 2]}
  end
  local limit = tonumber(ARGV[next_arg])
  if limit then
    local used = tonumber(redis.call('GET', KEYS[i])) or 0
    budgets[#budgets + 1] = {key = KEYS[i], stop = stop, left = limit - used, refusal = 2 - i, used = 0}
  end
  next_arg = next_arg + 3
end
local rate = granted_rate(KEYS[4], tonumber(ARGV[2]), now_us)
local interval, burst = math.max(1, math.floor(1000000 / rate + 0.5)), math.max(1, math.floor(rate * ARGV[3]))
local longest = tonumber(ARGV[4]) * 1000
local lease = string.format('%.0f', now + tonumber(ARGV[5]))
local per_card = ARGV[6] == 'card'
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now))
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', now))
local has_riders = redis.call('EXISTS', KEYS[2]) == 1
local free = tonumber(ARGV[1]) - redis.call('ZCARD', KEYS[1])
-- A point further ahead than any wait allowed stems from a clock stepped back: forget it.
local point = tonumber(redis.call('GET', KEYS[3])) or 0
if point > now_us + longest + interval * (burst + 1) then
  point = 0
end
point = math.max(point, now_us - interval * (burst - 1))
local reply, taken = {lease}, false

local function exhausted(cost)
  local refusal
  for _, budget in ipairs(budgets) do
    if budget.used + cost > budget.left then
      refusal = budget.refusal
    end
  end
  return refusal
end

local function pay(cost)
  for _, budget in ipairs(budgets) do
    budget.used = budget.used + cost
  end
end

while next_arg <= #ARGV do
  local last = next_arg + tonumber(ARGV[next_arg])
  local wait = math.max(0, point - now_us)
  local is_called = false
  for i = next_arg + 1, last do
    local refusal
    if redis.call('ZSCORE', KEYS[1], ARGV[i]) or (has_riders and redis.call('ZSCORE', KEYS[2], ARGV[i])) then
      refusal = -2
    elseif not is_called and (free < 1 or wait > longest) then
      refusal = -1
    elseif per_card or not is_called then
      refusal = exhausted(1)
    end
    if refusal then
      reply[#reply + 1] = refusal
    else
      redis.call('ZADD', is_called and KEYS[2] or KEYS[1], lease, ARGV[i])
      if per_card or not is_called then
        pay(1)
      end
      has_riders = has_riders or is_called
      is_called = true
      reply[#reply + 1] = math.ceil(wait / 1000)
    end
  end
  if is_called then
    free = free - 1
    point = point + interval
    taken = true
  end
  next_arg = last + 1
end
if taken then
  local kept = math.max(tonumber(ARGV[5]), math.ceil((point - now_us) / 1000) + 1)
  redis.call('SET', KEYS[3], string.format('%.0f', point), 'PX', string.format('%.0f', kept))
  for _, budget in ipairs(budgets) do
    redis.call('INCRBY', budget.key, budget.used)
    redis.call('PEXPIREAT', budget.key, string.format('%.0f', budget.stop))
  end
end
return reply
