-- Parameters: tenant, key, state, reason, opened_at, probe_at, node, generation. Returns the state if it was news.
insert into health_breaker as known (tenant, key, state, reason, opened_at, probe_at, generation, author)
values ($1, $2, $3, $4, $5, $6, $8, $7)
on conflict (tenant, key) do update set
  state = excluded.state, reason = excluded.reason, opened_at = excluded.opened_at,
  probe_at = excluded.probe_at, generation = excluded.generation, prober = null,
  author = case when excluded.state = 'closed' and known.state = 'closed' then known.author else excluded.author end
where known.generation < excluded.generation
  and (excluded.state = 'closed' or known.state = 'closed' or known.reason is distinct from excluded.reason)
returning state
