-- Shared: delete a task for good. Needs _places, _message, _lock; prepended to the inspector's scripts.
-- KEYS, ARGV and returns are those of the script it is prepended to; atomic as a part of it.

-- Deletes a task and the lock it holds. Go names the lock of a group task in the message only.
local function forget_task(id)
  local key = task_key(id)
  local fields = redis.pcall('HMGET', key, 'unique_key', 'group')
  if not fields.err and not fields[1] and fields[2] then
    release_lock(PREFIX, message_field(redis.call('HGET', key, 'msg') or '', 10), id)
  end
  delete_task(PREFIX, key, id)
end
