with fence as materialized (select number from node where id = $1 and buried_at is null for share),
parked as (
  update delivery d set holder = null, parked = $4, parked_at = $5
  from fence f, unnest($2::bytea[], $3::int[]) v(id, attempt)
  where d.id >= v.id and d.id <= v.id and d.attempt = v.attempt and d.holder is not distinct from f.number
)
select number from fence
