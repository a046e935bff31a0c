delete from idempotency k using unnest($1::text[], $2::text[]) v (tenant, key)
where (k.tenant, k.key) >= (v.tenant, v.key) and (k.tenant, k.key) <= (v.tenant, v.key)
