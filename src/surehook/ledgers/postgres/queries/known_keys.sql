select k.tenant, k.key, k.event, k.digest, k.fan_out
from unnest($1::text[], $2::text[]) v (tenant, key) cross join lateral (
  select * from idempotency where tenant = v.tenant and key = v.key offset 0
) k
