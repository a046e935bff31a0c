select
  d.id, d.event, d.endpoint, d.tenant, d.type, d.lane, d.attempt, d.due_at, d.born_at, e.body, d.stood_ms, d.spared, d.freed,
  d.overdue_at, d.replay_of, d.outcome, d.unknown, d.parked, d.holder is not null
from (select * from delivery where overdue_at is not null and overdue_at <= $1 order by overdue_at, id limit $2) d
cross join lateral (select body from event where id = d.event offset 0) e
order by d.overdue_at, d.id
