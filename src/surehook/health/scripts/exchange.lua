-- One exchange of a node (ports/health.py): apply updates, add counts, answer views and sharers.
-- ARGV[1]: JSON {node, now, since, buckets, busy_ms, overlap_ms, keep_s, updates, counted, busy}; the answer is JSON.
-- All keys share one hash tag, so that one node of a cluster has them all.
local ask = cjson.decode(ARGV[1])
local now, node = ask.now, ask.node
local CHANGED = KEYS[1]

local function place(tenant, key) return CHANGED .. ':' .. tenant .. '|' .. key end

local function text(value) if value == cjson.null or value == nil then return '' end return value end

for _, update in ipairs(ask.updates) do
  local at = place(update.tenant, update.key)
  local old = redis.call('HMGET', at, 'state', 'reason', 'generation', 'prober', 'author', 'probe_at')
  local generation = tonumber(old[3]) or 0
  local told = update.generation
  local news = update.state == 'closed' or (old[1] or 'closed') == 'closed' or (old[2] or '') ~= text(update.reason)
    or ((old[4] or '') == node and not update.again)
  if update.hastened then
    if old[1] == 'open' and update.probe_at < tonumber(old[6]) then
      generation = math.max(now, generation + 1, told)
      redis.call('HSET', at, 'probe_at', update.probe_at, 'generation', generation)
      redis.call('ZADD', CHANGED, generation, cjson.encode({update.tenant, update.key}))
    end
  elseif update.again and told <= generation then
    -- It is known, or something newer is.
  elseif not news then
    -- The state stays. Its generation passes the one that was told, so that the node learns the state.
    if not update.again then told = told + 1 end
    redis.call('HSET', at, 'generation', math.max(generation, told))
  else
    local author = node
    if update.state == 'closed' and old[1] == 'closed' then author = old[5] or node end
    generation = update.again and told or math.max(now, generation + 1, told)
    if update.state == 'closed' then redis.call('DEL', at) end
    redis.call('HSET', at, 'state', update.state, 'reason', text(update.reason), 'opened_at', update.opened_at,
      'probe_at', update.probe_at, 'generation', generation, 'author', author, 'prober', '', 'probe_until', 0)
    redis.call('EXPIRE', at, ask.keep_s)
    redis.call('ZADD', CHANGED, generation, cjson.encode({update.tenant, update.key}))
  end
end

local views, seen = {}, {}

local function view(tenant, key, calls, failures)
  local at = place(tenant, key)
  local now_known = redis.call('HMGET', at, 'state', 'reason', 'opened_at', 'probe_at', 'generation', 'author')
  seen[at] = true
  views[#views + 1] = {
    tenant = tenant, key = key, state = now_known[1] or 'closed', reason = now_known[2] or '',
    opened_at = tonumber(now_known[3]) or 0, probe_at = tonumber(now_known[4]) or 0,
    generation = tonumber(now_known[5]) or 0, author = now_known[6] or '', calls = calls, failures = failures,
  }
end

for _, report in ipairs(ask.counted) do
  local at = place(report.tenant, report.key)
  for _, bucket in ipairs(report.buckets) do
    redis.call('HINCRBY', at, 'c' .. bucket[1], bucket[2])
    redis.call('HINCRBY', at, 'f' .. bucket[1], bucket[3])
  end
  local oldest = math.floor(now * ask.buckets / report.window_ms) - ask.buckets
  local newest = math.floor((now + ask.overlap_ms) * ask.buckets / report.window_ms)
  local calls, failures, gone = 0, 0, {}
  local all = redis.call('HGETALL', at)
  for i = 1, #all, 2 do
    local kind, number = string.match(all[i], '^([cf])(%d+)$')
    if kind then
      if tonumber(number) <= oldest then gone[#gone + 1] = all[i]
      elseif tonumber(number) > newest then
        -- It was counted by a clock that has been set back.
      elseif kind == 'c' then calls = calls + all[i + 1]
      else failures = failures + all[i + 1] end
    end
  end
  if #gone > 0 then redis.call('HDEL', at, unpack(gone)) end
  redis.call('EXPIRE', at, ask.keep_s)
  view(report.tenant, report.key, calls, failures)
end

redis.call('ZREMRANGEBYSCORE', CHANGED, '-inf', now - ask.keep_s * 1000)
local since = math.min(ask.since, now - ask.overlap_ms)
local changed = redis.call('ZRANGEBYSCORE', CHANGED, '(' .. string.format('%.0f', since), '+inf', 'WITHSCORES',
  'LIMIT', 0, ask.views)
for i = 1, #changed, 2 do
  local tenant_key = cjson.decode(changed[i])
  if not seen[place(tenant_key[1], tenant_key[2])] then view(tenant_key[1], tenant_key[2]) end
  since = math.max(since, math.min(tonumber(changed[i + 1]), now) - ask.overlap_ms)
end
for _, update in ipairs(ask.updates) do
  if not seen[place(update.tenant, update.key)] then view(update.tenant, update.key) end
end

local sharers = {}
for _, endpoint in ipairs(ask.busy) do
  local at = CHANGED .. ':busy:' .. endpoint
  redis.call('ZADD', at, now + ask.busy_ms, node)
  redis.call('ZREMRANGEBYSCORE', at, '-inf', now)
  redis.call('ZREMRANGEBYSCORE', at, '(' .. string.format('%.0f', now + ask.busy_ms + ask.overlap_ms), '+inf')
  redis.call('PEXPIRE', at, ask.busy_ms)
  sharers[#sharers + 1] = redis.call('ZCARD', at)
end

if #views == 0 then views = nil end
if #sharers == 0 then sharers = nil end
return cjson.encode({views = views, sharers = sharers, since = since})
