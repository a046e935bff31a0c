select k.tenant, k.key, k.event, k.digest, k.fan_out
from unnest($1::text[], $2::text[]) v (tenant, key) join idempotency k on k.tenant = v.tenant and k.key = v.key
