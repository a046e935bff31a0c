-- $1 node, $2 lane, $3 due by, $4 limit, $5 unmarked rows from this instant on, $6 lost ones from this mark on.
-- delivery_handing is built on `lane + 0`, so that no plan takes another index.
-- `walked` counts the entries of that index that were read, those of vanished rows too (0 if the server keeps no statistics).
with fence as materialized (
  select number, coalesce(pg_stat_get_xact_tuples_returned('delivery_handing'::regclass), 0) as walked
  from node where id = $1 and buried_at is null for share
), mine as materialized (
  select h.generation, h.passed from handoff h, fence f where h.lane = $2::smallint and h.sweeper = $1
), lost as materialized (
  select d.id, d.due_at from delivery d
  where d.holder is null and d.parked is null and d.lane + 0 = $2::int and d.handed >= $6
    and d.handed < (select passed from mine) and d.due_at <= $3
  order by d.handed, d.due_at, d.id limit $4 for update skip locked
), fresh as materialized (
  select d.id, d.due_at from delivery d
  where d.holder is null and d.parked is null and d.lane + 0 = $2::int and d.handed = 0 and d.due_at >= $5
    and d.due_at <= $3 and exists (select 1 from mine)
  order by d.due_at, d.id limit $4 - (select count(*) from lost) for update skip locked
), marked as (
  update delivery d set handed = m.generation
  from mine m, (select id from lost union all select id from fresh) p where d.id >= p.id and d.id <= p.id
  returning d.id, d.due_at
)
select f.number, m.generation, m.passed, r.id,
  coalesce(pg_stat_get_xact_tuples_returned('delivery_handing'::regclass), 0) - f.walked as walked
from fence f left join mine m on true left join marked r on true
order by r.due_at, r.id
