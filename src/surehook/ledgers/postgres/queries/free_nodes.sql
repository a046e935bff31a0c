-- After five frees in a row a delivery waits, since it may be what kills its holders.
-- These may or may not have been sent; their histories say so.
with freed as (
  update delivery set
    holder = null, freed = freed + 1, due_at = case when freed >= 4 then greatest(due_at, $2::bigint + 10000) else due_at end
  where holder = any($1::bigint[])
  returning *
), lines as (
  insert into attempt (
    delivery, seq, lane, started_at, outcome, unknown, truncated, replay_of, tenant, endpoint, type, event, headers, body
  )
  select
    id, attempt * 64::bigint + least(freed - 1, 61), lane, $2, outcome, unknown, false, replay_of, tenant, endpoint,
    type, event, '', ''
  from freed
  on conflict (delivery, seq) do update set lane = excluded.lane, started_at = excluded.started_at
)
select count(*), min(due_at), array_agg(id) from freed
