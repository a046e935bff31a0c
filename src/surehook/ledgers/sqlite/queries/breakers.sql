select tenant, key, state, reason, opened_at, probe_at, failures, calls, generation from health order by tenant, key
