-- The configuration's version and, unless the node is evicted, the number under which it holds rows.
select c.version, n.number, c.lag_ms
from configuration c left join node n on n.id = ? and n.buried_at is null
