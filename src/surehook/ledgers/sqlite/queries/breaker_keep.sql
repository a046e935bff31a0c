insert into health (tenant, key, state, reason, opened_at, probe_at, failures, calls, generation)
select ?, ?, ?, ?, ?, ?, ?, ?, ?
where not exists (select 1 from breaker_closed where tenant = ? and key = ? and generation >= ?)
on conflict (tenant, key) do update set
  state = excluded.state, reason = excluded.reason, opened_at = excluded.opened_at, probe_at = excluded.probe_at,
  failures = excluded.failures, calls = excluded.calls, generation = excluded.generation
where generation <= excluded.generation
