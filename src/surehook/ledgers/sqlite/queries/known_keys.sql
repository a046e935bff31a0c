select k.tenant, k.key, k.event, k.digest, k.fan_out
from (select column1 as tenant, column2 as key from (values {rows:2}) limit ?) v
cross join idempotency k on k.tenant = v.tenant and k.key = v.key
where k.expires_at > ?
