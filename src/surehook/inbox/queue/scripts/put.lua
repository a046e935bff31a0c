-- Bodies into the stream as far as they fit; for each 1, or 0 where it did not.
-- KEYS  stream, the bytes in it     ARGV  the most bytes, bodies
local held = 0
if redis.call('XLEN', KEYS[1]) > 0 then held = tonumber(redis.call('GET', KEYS[2]) or '0') end
local most, answers = tonumber(ARGV[1]), {}
for at = 2, #ARGV do
  if held + #ARGV[at] > most then
    answers[at - 1] = 0
  else
    redis.call('XADD', KEYS[1], '*', 'body', ARGV[at])
    held = held + #ARGV[at]
    answers[at - 1] = 1
  end
end
redis.call('SET', KEYS[2], string.format('%.0f', held))
return answers
