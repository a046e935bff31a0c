select
  e.id, e.tenant, e.url, e.event_types, e.policy, e.status, e.reason, e.failure_count, e."order", e.headers,
  e.description, e.created_at, e.updated_at, e.method, e.authentication, e.tls, e.receipts
from endpoint e where e.id > ? order by e.id limit ?
