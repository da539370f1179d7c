-- Finds unique locks whose holder is gone, and frees them.
--
-- KEYS     the locks
-- ARGV[1]  prefix of task hashes; the holders, and so their keys, are only known here
-- ARGV[2]  1 = free them, 0 = only tell
-- Returns  {fault, key, remedy, …}
-- Atomic because   a lock freed for a task that is gone may be held by a new one by then.
local findings = {}
for _, key in ipairs(KEYS) do
  local holder = redis.pcall('GET', key)
  if type(holder) == 'string' then
    local size = redis.pcall('HSTRLEN', ARGV[1] .. holder, 'msg')
    if type(size) ~= 'number' or size == 0 then
      findings[#findings + 1] = 'stale_lock'
      findings[#findings + 1] = key
      findings[#findings + 1] = 'deleted'
      if ARGV[2] == '1' then
        redis.call('DEL', key)
      end
    end
  end
end
return findings
