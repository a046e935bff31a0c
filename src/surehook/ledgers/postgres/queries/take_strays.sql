-- $1 node, $2 lane, $3 notes of this transaction or later, $4 due by, $5 limit, $6 bytes, $7 endpoints and $8 tenants to skip,
-- $9 notes to read, $10 rows that they may name, $11 rows due from this instant on are left to claims. Otherwise like `claim`;
-- a note of which no row is ready any more is deleted.
with fence as materialized (select number from node where id = $1 and buried_at is null for share),
looked as materialized (
  select told, number, coalesce(sum(cardinality(rows)) over (
    order by told, number rows between unbounded preceding and 1 preceding), 0) as before
  from (
    select told, number, rows from stray
    where lane = $2::smallint and told >= $3 and endpoint <> all($7::bytea[]) and tenant <> all($8::text[])
    order by lane, told, number limit $9
  ) s
), notes as materialized (
  select s.told, s.number, s.rows from (select * from looked where before < $10) l
  join stray s on s.lane = $2::smallint and s.told >= l.told and s.told <= l.told and s.number >= l.number
    and s.number <= l.number
  for update of s skip locked
), named as materialized (
  select n.number, d.id, d.due_at from notes n cross join lateral unnest(n.rows) r(id) cross join lateral (
    select id, due_at from delivery
    where id = r.id and num_nonnulls(holder, parked) = 0 and lane = $2::smallint and due_at <= $4 offset 0
  ) d
), picked as materialized (
  select d.id, d.event, d.due_at from (
    -- Two notes may name one row.
    select distinct due_at, id from named where due_at < $11 order by due_at, id limit $5
  ) m
  join delivery d on d.id >= m.id and d.id <= m.id
  where num_nonnulls(d.holder, d.parked) = 0 for update of d skip locked
), sized as materialized (
  -- `before` sums the bytes of earlier rows, each event's once.
  select p.*, e.body, coalesce(sum(case when p.is_first then octet_length(e.body) else 0 end) over (
    order by p.due_at, p.id rows between unbounded preceding and 1 preceding), 0) as before
  from (select *, row_number() over (partition by event order by due_at, id) = 1 as is_first from picked) p
  cross join lateral (select body from event where id = p.event offset 0) e
), held as (
  update delivery d set holder = f.number, handed = 0 from fence f, sized s
  where d.id >= s.id and d.id <= s.id and s.before < $6
  returning d.*, case when s.is_first then s.body end as body
), dropped as (
  delete from stray s using notes n
  where s.lane = $2::smallint and s.told >= n.told and s.told <= n.told and s.number >= n.number and s.number <= n.number
    and n.number not in (select number from named where id not in (select id from held))
    and exists (select from fence)
)
select
  {{leased}}
from fence f left join held h on true
order by h.due_at, h.id
