-- The notes after a version, in order, each with the tenant of its endpoint.
select n.version, n.kind, n.key, e.tenant
from configuration_change n left join endpoint e on n.kind = 'endpoint' and e.id = n.key
where n.version > ? order by n.version
