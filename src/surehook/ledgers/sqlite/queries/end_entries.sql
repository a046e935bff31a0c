insert into attempt (
  delivery, seq, lane, started_at, outcome, unknown, truncated, end, reason, finished_at,
  replay_of, tenant, endpoint, type, event, headers, body
)
select
  d.id, d.attempt * 64 + 62, d.lane, ?, d.outcome, d.unknown, 0, ?, ?, ?,
  d.replay_of, d.tenant, d.endpoint, d.type, d.event, x'', x''
from (select column1 as id from (values {rows:1}) limit ?) v
cross join delivery d on d.id = v.id
