-- Become the one probe of a breaker, by compare-and-set (ports/health.py). 1: it is this node.
-- KEYS[1]: the breaker. ARGV: node, now, until (Unix milliseconds), and how far clocks may differ.
local known = redis.call('HMGET', KEYS[1], 'state', 'probe_at', 'prober', 'probe_until', 'generation', 'opened_at')
local now, apart = tonumber(ARGV[2]), tonumber(ARGV[4])
if not known[5] then return 1 end
if known[1] ~= 'open' or (now < tonumber(known[2]) and tonumber(known[6]) <= now + apart) then return 0 end
local held_until = tonumber(known[4])
if known[3] ~= '' and known[3] ~= ARGV[1] and now < held_until and held_until <= tonumber(ARGV[3]) + apart then
  return 0
end
redis.call('HSET', KEYS[1], 'prober', ARGV[1], 'probe_until', ARGV[3])
return 1
