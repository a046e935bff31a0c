insert into health (tenant, key, state, reason, opened_at, probe_at, failures, calls)
select * from unnest(
  $1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::int[], $8::int[]
)
on conflict (tenant, key) do update set
  state = excluded.state, reason = excluded.reason, opened_at = excluded.opened_at, probe_at = excluded.probe_at,
  failures = excluded.failures, calls = excluded.calls
