-- The newest version, and the notes after the one in memory, in order.
select c.version, n.version, n.kind, n.key
from configuration c left join configuration_change n on n.version > ? order by n.version limit ?
