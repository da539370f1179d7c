-- What the lease scripts share: the server's time, and the lease read without trust in what is there.
--
-- KEYS none   ARGV none   Returns nothing by itself: it is put before a script.
--
-- Atomic as part of the script that calls it.
local function now_ms()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

local function whole(text)  -- a whole number a double holds exactly, or 0 for anything else
  if text and string.find(text, '^%d+$') and tonumber(text) < 2 ^ 53 - 1 then
    return tonumber(text)
  end
  return 0
end

local function text(number)
  return string.format('%.0f', number)
end

local function is_kind(key, kind)  -- a foreign value under our key counts as nothing there
  local found = redis.call('TYPE', key)
  return (found.ok or found) == kind
end
