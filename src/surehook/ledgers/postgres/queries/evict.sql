-- $1 nodes, $2 now, $3 and $4 nodes and the counters by which they were judged. Waits for every transaction that has
-- share-locked one of their rows, and for a heartbeat under way, which then decides.
with silent as (
  delete from beat b
  where b.node = any($1::bytea[])
    -- An expression is evaluated again on the row that a heartbeat has updated; a subquery would not be.
    and b.counter = coalesce(($4::bigint[])[array_position($3::bytea[], b.node)], b.counter)
  returning b.node
)
update node n set buried_at = $2
where n.id = any($1::bytea[]) and n.buried_at is null
  and (n.id in (select node from silent) or not exists (select from beat b where b.node = n.id))
returning n.number, n.id
