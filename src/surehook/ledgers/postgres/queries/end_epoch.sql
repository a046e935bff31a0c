-- $1 node, $2 lane
with fence as materialized (select number from node where id = $1 and buried_at is null for share),
raised as (
  update handoff h set generation = h.generation + 1 from fence f where h.lane = $2::smallint and h.sweeper = $1
  returning h.generation - 1 as ended
)
select f.number, r.ended from fence f left join raised r on true
