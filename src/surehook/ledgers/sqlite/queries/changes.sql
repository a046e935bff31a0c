-- The newest version, and the notes after the one in memory, in order, with the endpoints that they name and their secrets. One
-- statement, so that all is of one instant.
select
  c.version, n.version, n.kind, n.key,
  e.id, e.tenant, e.url, e.event_types, e.policy, e.status, e.reason, e.failure_count, e."order", e.headers,
  e.description, e.created_at, e.updated_at, e.method, e.authentication, e.tls, e.receipts,
  s.id, s.endpoint, s.kind, s.material, s.created_at, s.expires_at
from configuration c
left join (select * from configuration_change where version > ? order by version, kind, key limit ?) n
left join endpoint e on n.kind = 'endpoint' and e.id = n.key
left join secret s on s.endpoint = e.id
order by n.version, n.kind, n.key, s.id
