delete from idempotency k using unnest($1::text[], $2::text[]) v (tenant, key)
where k.tenant = v.tenant and k.key = v.key
