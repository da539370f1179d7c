-- Shared: release a unique lock. Prepended to the scripts that end a task.
-- KEYS, ARGV and returns are those of the script it is prepended to; atomic as a part of it.

-- Deletes `key` if it is held by `id`. A key outside the queue's slot cannot come from the protocol
-- (base.UniqueKey) and is left alone: touching it would abort the script on a cluster.
local function release_lock(prefix, key, id)
  if key and key ~= '' and string.sub(key, 1, #prefix) == prefix then
    if redis.pcall('GET', key) == id then
      redis.call('DEL', key)
    end
  end
end

-- Deletes a task's hash, and the lock named in it if the task still holds it.
local function delete_task(prefix, task_key, id)
  local key = redis.pcall('HGET', task_key, 'unique_key')
  if type(key) == 'string' then
    release_lock(prefix, key, id)
  end
  redis.call('DEL', task_key)
end
