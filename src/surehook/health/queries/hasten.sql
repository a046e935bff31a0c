-- Parameters: tenants, keys, probe_ats, generations; now. Open breakers may be probed sooner; a higher generation tells everybody.
with due as (
  select b.tenant, b.key, told.probe_at, told.generation
  from unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[]) as told (tenant, key, probe_at, generation)
  join health_breaker b using (tenant, key)
  where b.state = 'open' and b.probe_at > told.probe_at
  order by tenant collate "C", key collate "C"
  for update of b
)
update health_breaker b set probe_at = due.probe_at, generation = greatest($5::bigint, b.generation + 1, due.generation)
from due
where b.tenant = due.tenant and b.key = due.key
