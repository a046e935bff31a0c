insert or replace into health (tenant, key, state, reason, opened_at, probe_at, failures, calls)
values (?, ?, ?, ?, ?, ?, ?, ?)
