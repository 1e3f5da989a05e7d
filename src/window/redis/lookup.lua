--[[
  What the window knows of one feed, in one call a batch.

  KEYS[1]  memory  hash: term, size, lastLeaf
  KEYS[2]  keys    sorted set: member of an idempotency key, scored by the position of its entry
  ARGV     members to look up, any number

  Replies  { { term, size, lastLeaf }, { score or nil for each member, in order } }
           The second list is empty where the feed has no memory: positions of an unknown term mean nothing.
  Errors   WRONGTYPE where another program wrote under our keys; the next record.lua repairs it.

  Writes nothing, so that it also answers when Redis is full or a read-only replica.
]]
local CHUNK = 7000 -- unpack fails near 8000 values

local memory = redis.call('HMGET', KEYS[1], 'term', 'size', 'lastLeaf')
local scores = {}
if not memory[1] then
  return { memory, scores }
end
for first = 1, #ARGV, CHUNK do
  local found = redis.call('ZMSCORE', KEYS[2], unpack(ARGV, first, math.min(first + CHUNK - 1, #ARGV)))
  for i = 1, #found do
    scores[first + i - 1] = found[i]
  end
end
return { memory, scores }
