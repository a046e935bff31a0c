select tenant, key, state, reason, opened_at, probe_at, failures, calls from health order by tenant, key
