-- $1 node, $2 lane, $3 and $4 due time and id to begin after, $5 due by, $6 limit, $7 rows to look at, $8 endpoints and
-- $9 tenants to pass over, $10 bytes, $11 notes of strays. As `claim`; with each row the last one that was looked at, where there may be more.
with fence as materialized (select number from node where id = $1 and buried_at is null for share),
looked as materialized (
  select id, due_at, endpoint, tenant from delivery
  where holder is null and parked is null and lane = $2::smallint and due_at <= $5
    and due_at >= $3 and (due_at, id) > ($3, $4)  -- the first of which is where the walk begins, beside an equality
  order by due_at, id limit $7
), others as materialized (
  select id from looked where endpoint <> all($8::bytea[]) and tenant <> all($9::text[]) order by due_at, id limit $6
), picked as materialized (
  select d.id, d.event, d.due_at from others o join delivery d on d.id >= o.id and d.id <= o.id
  where num_nonnulls(d.holder, d.parked) = 0 for update of d skip locked
), sized as materialized (  -- `before`: bytes of what stands in front, each event's once
  select p.*, e.body, coalesce(sum(case when p.is_first then octet_length(e.body) else 0 end) over (
    order by p.due_at, p.id rows between unbounded preceding and 1 preceding), 0) as before
  from (select *, row_number() over (partition by event order by due_at, id) = 1 as is_first from picked) p
  cross join lateral (select body from event where id = p.event offset 0) e
), held as (
  update delivery d set holder = f.number, handed = 0 from fence f, sized s
  where d.id >= s.id and d.id <= s.id and s.before < $10
  returning d.*, case when s.is_first then s.body end as body
), ended as (
  select due_at, id from looked offset $7 - 1 limit 1
)
select
  h.id, h.event, h.endpoint, h.tenant, h.type, h.lane, h.attempt, h.due_at, h.born_at, h.body, h.stood_ms, h.spared, h.freed,
  h.overdue_at, h.replay_of, h.outcome, h.unknown, h.parked, true,
  e.due_at as last_due, e.id as last_id,
  (select case when exists (select from stray where lane = $2::smallint and told >= $11::bigint) then -1
    else pg_snapshot_xmin(pg_current_snapshot())::text::bigint end) as clear
from fence f left join ended e on true left join held h on true
order by h.due_at, h.id
