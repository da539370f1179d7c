-- Shared: the calls a second an account may be asked at now. Prepended to admit.lua, ease.lua and load.lua.
-- KEYS, ARGV and returns are those of the script it is prepended to; atomic as a part of it.
--
-- The key holds "<calls a second> <unix us> <growth>": the rate it was lowered to when its carrier refused
-- calls, when that was, and by how much it grows each second. Without it the rate is the configured one.
local function granted_rate(key, configured, now_us)
  local held = string.gmatch(redis.call('GET', key) or '', '%S+')
  local rate, since, growth = tonumber(held() or ''), tonumber(held() or ''), tonumber(held() or '')
  if not (rate and since and growth and rate > 0) then
    return configured
  end
  return math.min(configured, rate + growth * math.max(0, now_us - since) / 1000000), since
end

