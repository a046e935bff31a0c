-- Endpoints that a window may change; successes change only those that have failures.
select e.id, e.tenant, e.failure_count, e.status, e.reason, e.url
from unnest($1::bytea[], $2::bool[]) v(id, is_plain) join endpoint e on e.id >= v.id and e.id <= v.id
where not v.is_plain or e.failure_count <> 0
order by e.id for update of e
