delete from health h using unnest($1::text[], $2::text[]) v(tenant, key) where h.tenant = v.tenant and h.key = v.key
