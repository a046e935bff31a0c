-- The newest version, and the notes after the one in memory, in order, with the endpoints that they name and their secrets. One
-- statement, so that all is of one instant.
select
  c.version, n.version, n.kind, n.key,
  e.id, e.tenant, e.url, e.event_types, e.policy, e.status, e.reason, e.failure_count, e."order", e.headers,
  e.description, e.created_at, e.updated_at, e.method, e.authentication, e.tls, e.receipts,
  s.id, s.endpoint, s.kind, s.material, s.created_at, s.expires_at
from configuration c
left join lateral (
  select version, kind, key from configuration_change where version > $1 order by version, kind, key limit $2
) n on true
left join lateral (select * from endpoint where n.kind = 'endpoint' and id = n.key offset 0) e on true
left join lateral (select * from secret where endpoint = e.id offset 0) s on true
order by n.version, n.kind, n.key, s.id
