-- Forget takers that hold nothing and have not been here for so long. One that holds something must stay: with it Redis
-- would forget what it held, which nobody would ever be given again.
-- KEYS  stream     ARGV  group, milliseconds
for _, found in ipairs(redis.call('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])) do
  local taker = {}
  for at = 1, #found, 2 do taker[found[at]] = found[at + 1] end
  if taker['pending'] == 0 and taker['idle'] > tonumber(ARGV[2]) then
    redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], taker['name'])
  end
end
