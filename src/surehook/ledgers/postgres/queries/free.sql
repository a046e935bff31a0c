-- Frees these rows as an eviction would.
with fence as materialized (select number from node where id = $1 and buried_at is null for share),
freed as (
  update delivery d set
    holder = null, freed = d.freed + 1,
    due_at = case when d.freed >= 4 then greatest(d.due_at, $3::bigint + 10000) else d.due_at end
  from fence f, unnest($2::bytea[]) v(id)
  where d.id >= v.id and d.id <= v.id and d.holder is not distinct from f.number
  returning d.*
), lines as (
  insert into attempt (
    delivery, seq, lane, started_at, outcome, unknown, truncated, replay_of, tenant, endpoint, type, event, headers, body
  )
  select
    id, attempt * 64::bigint + least(freed - 1, 61), lane, $3, outcome, unknown, false, replay_of, tenant, endpoint,
    type, event, '', ''
  from freed
  on conflict (delivery, seq) do update set lane = excluded.lane, started_at = excluded.started_at
)
select (select min(due_at) from freed), array(select id from freed) from fence
