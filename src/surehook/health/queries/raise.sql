-- Parameters: tenants, keys, generations. What is known must not be older than what was told.
update health_breaker b set generation = told.generation
from unnest($1::text[], $2::text[], $3::bigint[]) as told (tenant, key, generation)
where b.tenant = told.tenant and b.key = told.key and b.generation < told.generation
