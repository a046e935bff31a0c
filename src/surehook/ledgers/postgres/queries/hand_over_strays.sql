-- $1 node, $2 lane, $3 due by, $4 limit, $5 notes of this transaction or later, $6 notes to read; unmarked rows due from $7 on and
-- lost ones with a mark from $8 on are left to sweeps. A note of which no row is to be handed over any more is deleted.
with fence as materialized (select number from node where id = $1 and buried_at is null for share),
mine as materialized (
  select h.generation, h.passed from handoff h, fence f where h.lane = $2::smallint and h.sweeper = $1
), notes as materialized (
  select told, number, rows from stray where lane = $2::smallint and told >= $5 and exists (select from mine)
  order by lane, told, number limit $6 for update skip locked
), named as materialized (
  select n.number, d.id, d.due_at, d.handed from notes n cross join lateral unnest(n.rows) r(id) cross join lateral (
    select id, due_at, handed from delivery
    where id = r.id and num_nonnulls(holder, parked) = 0 and lane = $2::smallint and due_at <= $3 offset 0
  ) d cross join mine m
  where d.handed = 0 or d.handed < m.passed
), picked as materialized (
  select d.id from (
    select distinct due_at, id from named where case when handed = 0 then due_at < $7 else handed < $8 end
    order by due_at, id limit $4
  ) o join delivery d on d.id >= o.id and d.id <= o.id
  where num_nonnulls(d.holder, d.parked) = 0 for update of d skip locked
), marked as (
  update delivery d set handed = m.generation from mine m, picked p where d.id >= p.id and d.id <= p.id
  returning d.id, d.due_at
), dropped as (
  delete from stray s using notes n
  where s.lane = $2::smallint and s.told >= n.told and s.told <= n.told and s.number >= n.number and s.number <= n.number
    and n.number not in (select number from named where id not in (select id from marked))
)
select f.number, r.id from fence f left join marked r on true order by r.due_at, r.id
