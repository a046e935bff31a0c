-- $1 nodes, $2 now, $3 and $4 nodes and the counters they were judged by. Waits for every transaction that holds a share of
-- one of their rows, and for a beat under way, which then decides.
with silent as (
  delete from beat b
  where b.node = any($1::bytea[])
    -- An expression, which is evaluated again on the row as a beat has left it; of a subquery that would not be said.
    and b.counter = coalesce(($4::bigint[])[array_position($3::bytea[], b.node)], b.counter)
  returning b.node
)
update node n set buried_at = $2
where n.id = any($1::bytea[]) and n.buried_at is null
  and (n.id in (select node from silent) or not exists (select from beat b where b.node = n.id))
returning n.number, n.id
