-- $1 node, $2 lane: sweep from now on, unless another living node does.
with fence as materialized (select number from node where id = $1 and buried_at is null for share),
taken as (
  update handoff h set sweeper = $1 from fence f
  where h.lane = $2::smallint and (
    h.sweeper is null or h.sweeper = $1
    or not exists (select 1 from node n where n.id = h.sweeper and n.buried_at is null)
  )
  returning h.lane
)
select f.number, t.lane from fence f left join taken t on true
