-- Parameters: tenants, keys. Closing forgets what was counted.
delete from health_count c using unnest($1::text[], $2::text[]) as closed (tenant, key)
where c.tenant = closed.tenant and c.key = closed.key
