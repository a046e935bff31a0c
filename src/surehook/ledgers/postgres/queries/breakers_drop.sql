delete from health h using unnest($1::text[], $2::text[], $3::bigint[]) v(tenant, key, generation)
where h.tenant = v.tenant and h.key = v.key and h.generation <= v.generation
