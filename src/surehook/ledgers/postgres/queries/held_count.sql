-- $1 node, $2 all lanes (so that the index leads to the id), $3 lowest id.
select coalesce(sum(h.n), 0)::bigint from unnest($2::smallint[]) l(lane) cross join lateral (
  select count(*) as n from delivery
  where holder = (select number from node where id = $1) and lane = l.lane and id >= $3
) h
