-- The newest version, and the notes after the one in memory, in order. In one statement, hence of one instant.
select c.version, n.version, n.kind, n.key
from configuration c left join configuration_change n on n.version > $1 order by n.version limit $2
