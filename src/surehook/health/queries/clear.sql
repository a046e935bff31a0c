-- Parameters: tenants, keys. Closing forgets what was counted; rows in the order in which others count.
with gone as (
  select c.tenant, c.key, c.number
  from unnest($1::text[], $2::text[]) as closed (tenant, key)
  join health_count c using (tenant, key)
  order by tenant collate "C", key collate "C", number
  for update of c
)
delete from health_count c using gone where c.tenant = gone.tenant and c.key = gone.key and c.number = gone.number
