-- An opening and a closing that were written at the same moment did not see each other: an opening that is undone is left out.
select h.tenant, h.key, h.state, h.reason, h.opened_at, h.probe_at, h.failures, h.calls, h.generation
from health h
where not exists (
  select from breaker_closed c where c.tenant = h.tenant and c.key = h.key and c.generation >= h.generation
)
order by h.tenant, h.key
