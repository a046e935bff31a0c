-- Messages out of the stream; one that is put aside goes into another in the same step.
-- KEYS  stream, the bytes in it, aside     ARGV  group, reason (or empty), then id and body size of each, or id and body
local held = tonumber(redis.call('GET', KEYS[2]) or '0')
for at = 3, #ARGV, 2 do
  local size = tonumber(ARGV[at + 1])
  if ARGV[2] ~= '' then
    redis.call('XADD', KEYS[3], '*', 'body', ARGV[at + 1], 'reason', ARGV[2], 'was', ARGV[at])
    size = #ARGV[at + 1]
  end
  redis.call('XACK', KEYS[1], ARGV[1], ARGV[at])
  if redis.call('XDEL', KEYS[1], ARGV[at]) == 1 then held = held - size end
end
redis.call('SET', KEYS[2], string.format('%.0f', math.max(held, 0)))
