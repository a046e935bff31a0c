-- Some rows of each group after a position: their number, the last one, and those past their age.
select g.n, w.walked, w.last, w.aged
from unnest($1::bytea[], $2::text[], $3::bytea[], $4::bytea[], $5::bigint[])
  with ordinality g(endpoint, parked, place, ceiling, born_before, n)
cross join lateral (
  with walked as materialized (
    select id, born_at + stood_ms < g.born_before as is_aged from delivery
    where parked is not null
      and (endpoint, parked, id) > (g.endpoint, g.parked, g.place)
      and (endpoint, parked, id) < (g.endpoint, g.parked, g.ceiling)
    order by endpoint, parked, id limit $6
  )
  select
    (select count(*) from walked) as walked, (select id from walked order by id desc limit 1) as last,
    array(select id from walked where is_aged order by id limit $7) as aged
) w
