-- Shared: read one field of an encoded TaskMessage. Prepended to the inspector's scripts.
-- KEYS, ARGV and returns are those of the script it is prepended to; atomic as a part of it.
-- Needed where Go leaves something in the message only: the lock of a group task, when a task failed last.

local function read_varint(msg, at)
  local value, scale = 0, 1
  for _ = 1, 10 do
    local byte = string.byte(msg, at)
    if not byte then
      return nil
    end
    value = value + (byte % 128) * scale
    scale = scale * 128
    at = at + 1
    if byte < 128 then
      return value, at
    end
  end
  return nil
end

-- The value of field `wanted`, a number or a string; nil if it is absent or the message is broken before it.
local function message_field(msg, wanted)
  local at = 1
  while at <= #msg do
    local tag, kind, value, size
    tag, at = read_varint(msg, at)
    if not tag then
      return nil
    end
    kind = tag % 8
    if kind == 0 then
      value, at = read_varint(msg, at)
    elseif kind == 2 then
      size, at = read_varint(msg, at)
      if size then
        value = (tag - kind) / 8 == wanted and string.sub(msg, at, at + size - 1) or ''
        at = at + size
      end
    elseif kind == 1 or kind == 5 then
      at = at + (kind == 1 and 8 or 4)
    else
      return nil
    end
    if not at or (tag - kind) / 8 == wanted then
      return value
    end
  end
  return nil
end
