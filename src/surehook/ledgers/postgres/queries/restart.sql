-- Like unpark. The schedule starts over; attempt numbers go on.
with fence as materialized (
  select number, coalesce(pg_stat_get_xact_tuples_returned('delivery_parked'::regclass), 0) as walked
  from node where id = $1 and buried_at is null for share
), asked as materialized (
  -- Evaluated after the fence, so that the count there is the one before the walk.
  select r.reason from fence cross join unnest($3::text[]) r(reason)
), picked as materialized (
  select x.* from asked r cross join lateral (
    select d.id, d.event from delivery d
    where d.parked is not null and (d.endpoint, d.parked, d.id) >= ($2, r.reason, $6)
      and (d.endpoint, d.parked) <= ($2, r.reason)
    order by d.endpoint, d.parked, d.id limit $4 for update skip locked
  ) x order by x.id limit $4
), sized as materialized (
  -- `before` sums the bytes of earlier rows, each event's once.
  select p.*, e.body, coalesce(sum(case when p.is_first then octet_length(e.body) else 0 end) over (
    order by p.id rows between unbounded preceding and 1 preceding), 0) as before
  from (select *, row_number() over (partition by event order by id) = 1 as is_first from picked) p
  cross join lateral (select body from event where id = p.event offset 0) e
), held as (
  update delivery d set
    holder = f.number, born_at = $5, due_at = $5, stood_ms = 0, spared = d.attempt - 1, parked = null, parked_at = null
  from fence f, sized p where d.id >= p.id and d.id <= p.id and p.before < $7
  returning d.*, case when p.is_first then p.body end as body
)
select
  {{leased}},
  pg_stat_get_xact_tuples_returned('delivery_parked'::regclass) - f.walked as walked
from fence f left join held h on true
order by h.id
