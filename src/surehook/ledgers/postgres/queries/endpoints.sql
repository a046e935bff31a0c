select
  e.id, e.tenant, e.url, e.event_types, e.policy, e.status, e.reason, e.failure_count, e."order", e.headers,
  e.description, e.created_at, e.updated_at, e.method, e.authentication, e.tls, e.receipts
from unnest($1::bytea[]) v(id) cross join lateral (select * from endpoint where id = v.id offset 0) e
