-- $1 node, $2 lane, $3 epoch
with fence as materialized (select number from node where id = $1 and buried_at is null for share),
came as (
  update handoff h set passed = $3 from fence f
  where h.lane = $2::smallint and h.passed < $3 and h.generation > $3
)
select number from fence
