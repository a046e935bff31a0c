-- Parameters: tenant, key, state, reason, opened_at, probe_at, now, node, generation. Returns the state if the update took effect.
insert into health_breaker as known (tenant, key, state, reason, opened_at, probe_at, generation, author)
values ($1, $2, $3, $4, $5, $6, greatest($7::bigint, $9::bigint), $8::bytea)
on conflict (tenant, key) do update set
  state = excluded.state, reason = excluded.reason, opened_at = excluded.opened_at,
  probe_at = excluded.probe_at, generation = greatest($7, known.generation + 1, $9), prober = null,
  author = case when excluded.state = 'closed' and known.state = 'closed' then known.author else excluded.author end
where excluded.state = 'closed' or known.state = 'closed' or known.prober = $8::bytea
   or known.reason is distinct from excluded.reason
returning state
