-- $1 lane, $2 notes of strays, $3 node, $4 and $5 due time and id to begin after, $6 due by, $7 limit, $8 rows to read,
-- $9 endpoints and $10 tenants to skip, $11 bytes. Like `claim`; each row also has the last one that was read, if more may follow.
with fence as materialized (select number from node where id = $3 and buried_at is null for share),
looked as materialized (
  select id, due_at, endpoint, tenant from delivery
  where holder is null and parked is null and lane = $1::smallint and due_at <= $6
    -- The first condition is the start of the walk, since it stands beside an equality.
    and due_at >= $4 and (due_at, id) > ($4, $5)
  order by due_at, id limit $8
), others as materialized (
  select id from looked where endpoint <> all($9::bytea[]) and tenant <> all($10::text[]) order by due_at, id limit $7
), picked as materialized (
  select d.id, d.event, d.due_at from others o join delivery d on d.id >= o.id and d.id <= o.id
  where num_nonnulls(d.holder, d.parked) = 0 for update of d skip locked
), sized as materialized (
  -- `before` sums the bytes of earlier rows, each event's once.
  select p.*, e.body, coalesce(sum(case when p.is_first then octet_length(e.body) else 0 end) over (
    order by p.due_at, p.id rows between unbounded preceding and 1 preceding), 0) as before
  from (select *, row_number() over (partition by event order by due_at, id) = 1 as is_first from picked) p
  cross join lateral (select body from event where id = p.event offset 0) e
), held as (
  update delivery d set holder = f.number, handed = 0 from fence f, sized s
  where d.id >= s.id and d.id <= s.id and s.before < $11
  returning d.*, case when s.is_first then s.body end as body
), ended as (
  select due_at, id from looked offset $8 - 1 limit 1
)
select
  {{leased}},
  e.due_at as last_due, e.id as last_id,
  {{has_notes}}, (select {{snapshot}}) as snapshot
from fence f left join ended e on true left join held h on true
order by h.due_at, h.id
