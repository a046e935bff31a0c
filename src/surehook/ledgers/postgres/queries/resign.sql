-- $1 node, $2 lane
with fence as materialized (select number from node where id = $1 and buried_at is null for share),
resigned as (
  update handoff h set sweeper = null from fence f where h.lane = $2::smallint and h.sweeper = $1
)
select number from fence
