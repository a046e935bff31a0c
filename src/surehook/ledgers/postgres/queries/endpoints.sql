select
  id, tenant, url, event_types, policy, status, reason, failure_count, "order", headers, description, created_at,
  updated_at, method, authentication, tls, receipts
from endpoint order by id
