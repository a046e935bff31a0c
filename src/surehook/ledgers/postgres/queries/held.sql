-- $1 node, $2 limit, $3 all lanes (so that the index leads to the id), $4 lowest id.
select h.id from unnest($3::smallint[]) l(lane) cross join lateral (
  select id from delivery
  where holder = (select number from node where id = $1) and lane = l.lane and id >= $4 offset 0
) h order by h.id limit $2
