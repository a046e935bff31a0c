-- tenant, key, probe_at, now, generation: an open breaker may be probed sooner, and everybody learns of it.
update health_breaker set probe_at = $3, generation = greatest($4::bigint, generation + 1, $5::bigint)
where tenant = $1 and key = $2 and state = 'open' and probe_at > $3
