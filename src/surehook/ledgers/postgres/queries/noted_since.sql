-- The notes after a version, each with the tenant of its endpoint.
select n.version, n.kind, n.key, e.tenant
from configuration_change n
left join lateral (select tenant from endpoint where n.kind = 'endpoint' and id = n.key offset 0) e on true
where n.version > $1 order by n.version
