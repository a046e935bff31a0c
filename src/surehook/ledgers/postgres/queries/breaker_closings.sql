select c.tenant, c.key, 'closed', '', 0, 0, 0, 0, c.generation
from unnest($1::text[], $2::text[]) as asked (tenant, key) join breaker_closed c using (tenant, key)
