insert into health as known (tenant, key, state, reason, opened_at, probe_at, failures, calls, generation)
select v.* from unnest(
  $1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::int[], $8::int[], $9::bigint[]
) as v (tenant, key, state, reason, opened_at, probe_at, failures, calls, generation)
where not exists (
  select from breaker_closed c where c.tenant = v.tenant and c.key = v.key and c.generation >= v.generation
)
on conflict (tenant, key) do update set
  state = excluded.state, reason = excluded.reason, opened_at = excluded.opened_at, probe_at = excluded.probe_at,
  failures = excluded.failures, calls = excluded.calls, generation = excluded.generation
where known.generation <= excluded.generation
