--[[
  Remembers the keys of one committed batch and trims the window to the policy.

  KEYS[1]  memory  hash: term, size, lastLeaf; does not expire, so that a ledger that went back in time is noticed
  KEYS[2]  keys    sorted set: member of an idempotency key, scored by the position of its entry
  KEYS[3]  marks   sorted set: last position of a batch as 15 digits, scored by the batch's recordedAtMs
  ARGV[1]  term
  ARGV[2]  size          entries in the ledger after the batch
  ARGV[3]  lastLeaf      leaf hash of entry size - 1
  ARGV[4]  recordedAtMs  of the batch
  ARGV[5]  cutoffMs      what was recorded before it is outside the window by time
  ARGV[6]  maxEntries    positions below size - maxEntries are outside the window by count
  ARGV[7]  expireMs      after which keys and marks are dropped if nothing more comes
  ARGV[8…] position, member, position, member, …

  Replies  1 taken; 0 left alone, because a newer term is known
  Errors   OOM where Redis is full: nothing was added, but what left the window was removed
]]
local CHUNK = 7000 -- unpack fails near 8000 values; even, so that pairs stay together
local FIRST_PAIR = 8

-- Plain decimal digits. tonumber alone would also take '0x10', 'nan' and ' 1 '.
local function count(text)
  if text and #text <= 15 and string.find(text, '^%d+$') then
    return tonumber(text)
  end
  return nil
end

local kinds = { 'hash', 'zset', 'zset' }
local foreign = {}
for i, kind in ipairs(kinds) do
  local found = redis.call('TYPE', KEYS[i]).ok
  foreign[i] = found ~= 'none' and found ~= kind
end

local term, size = count(ARGV[1]), count(ARGV[2])
local knownTerm, knownSize = nil, nil
if not foreign[1] then
  local known = redis.call('HMGET', KEYS[1], 'term', 'size')
  knownTerm, knownSize = count(known[1]), count(known[2])
end
if knownTerm and knownSize and knownTerm > term then
  return 0
end
local sameTerm = knownTerm == term and knownSize ~= nil
local head = sameTerm and math.max(size, knownSize) or size

-- Positions of another term, or of an unknown one, name other entries: they are forgotten.
local function forget()
  for i, isForeign in ipairs(foreign) do
    if isForeign or (i > 1 and not sameTerm) then
      redis.call('UNLINK', KEYS[i])
    end
  end
end

local function trim()
  -- %.0f, because tostring writes 1e+15 where a score needs digits.
  redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', string.format('(%.0f', head - tonumber(ARGV[6])))
  local before = '(' .. ARGV[5]
  -- Members of one time are in order of their bytes, and they are padded: the first is the highest position.
  local expired = count(redis.call('ZREVRANGEBYSCORE', KEYS[3], before, '-inf', 'LIMIT', 0, 1)[1])
  if expired then
    redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', expired))
  end
  redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', before)
  -- Each batch has a position of its own, so that more marks than this are of positions gone by count.
  redis.call('ZREMRANGEBYRANK', KEYS[3], 0, string.format('%.0f', -2 - tonumber(ARGV[6])))
end

local mark = string.format('%015.0f', size - 1)

-- Must stay the first write of the script. A full server refuses it; but once a script has written anything, be it a
-- deletion, Redis lets all the rest through and would be filled beyond its limit.
local first = redis.pcall('ZADD', KEYS[3], ARGV[4], mark)
if type(first) == 'table' and first.err and string.find(first.err, 'OOM', 1, true) then
  forget()
  trim()
  return first
end

forget()
if not sameTerm or size > knownSize then
  redis.call('HSET', KEYS[1], 'term', ARGV[1], 'size', ARGV[2], 'lastLeaf', ARGV[3])
end
redis.call('ZADD', KEYS[3], ARGV[4], mark)
for from = FIRST_PAIR, #ARGV, CHUNK do
  -- GT: of a key with two entries the later one is kept, in whichever order the batches arrive.
  redis.call('ZADD', KEYS[2], 'GT', unpack(ARGV, from, math.min(from + CHUNK - 1, #ARGV)))
end
trim()
redis.call('PEXPIRE', KEYS[2], ARGV[7])
redis.call('PEXPIRE', KEYS[3], ARGV[7])
return 1
