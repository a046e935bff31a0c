-- $1 node, $2 lane, $3 from, $4 due by, $5 limit. Nobody waits for a row that somebody else is taking.
with fence as materialized (select number from node where id = $1 and buried_at is null for share),
picked as materialized (
  select id from delivery
  where holder is null and parked is null and lane = $2::smallint and due_at >= $3 and due_at <= $4
  order by due_at, id limit $5 for update skip locked
), held as (
  update delivery d set holder = f.number, handed = 0 from fence f, picked p where d.id >= p.id and d.id <= p.id
  returning d.*
)
select
  h.id, h.event, h.endpoint, h.tenant, h.type, h.lane, h.attempt, h.due_at, h.born_at, e.body, h.stood_ms, h.spared, h.freed,
  h.overdue_at, h.replay_of, h.outcome, h.unknown, h.parked, true
from fence f left join (
  held h cross join lateral (select body from event where id = h.event offset 0) e
) on true
order by h.due_at, h.id
