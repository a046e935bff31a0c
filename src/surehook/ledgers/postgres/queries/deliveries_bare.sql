-- Unfinished deliveries without their bodies: for reads that send nothing.
select
  d.id, d.event, d.endpoint, d.tenant, d.type, d.lane, d.attempt, d.due_at, d.born_at, ''::bytea, d.stood_ms, d.spared,
  d.freed, d.overdue_at, d.replay_of, d.outcome, d.unknown, d.parked, d.holder is not null
from unnest($1::bytea[]) v(id) cross join lateral (select * from delivery where id = v.id offset 0) d
