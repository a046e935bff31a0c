with fence as materialized (select number from node where id = $1 and buried_at is null for share),
picked as materialized (
  select d.id from unnest($2::bytea[]) v(id) join delivery d on d.id = v.id
  where d.holder is null and d.parked is null and d.due_at <= $3
  for update of d skip locked
), held as (
  update delivery d set holder = f.number, handed = 0 from fence f, picked p where d.id = p.id
  returning d.*
)
select
  h.id, h.event, h.endpoint, h.tenant, h.type, h.lane, h.attempt, h.due_at, h.born_at, e.body, h.stood_ms, h.spared, h.freed,
  h.overdue_at, h.replay_of, h.outcome, h.unknown, h.parked, true
from fence f left join (held h join event e on e.id = h.event) on true
