-- These may or may not have been sent; their histories say so.
insert or replace into attempt (
  delivery, seq, lane, started_at, outcome, unknown, truncated, replay_of, tenant, endpoint, type, event, headers, body
)
select
  id, attempt * 64 + min(freed, 61), lane, ?, outcome, unknown, 0, replay_of, tenant, endpoint, type, event, x'', x''
from delivery
where holder = ?
