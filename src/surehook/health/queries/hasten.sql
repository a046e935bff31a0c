-- Parameters: tenant, key, probe_at, now, generation. An open breaker may be probed sooner; a higher generation tells everybody.
update health_breaker set probe_at = $3, generation = greatest($4::bigint, generation + 1, $5::bigint)
where tenant = $1 and key = $2 and state = 'open' and probe_at > $3
