select e.id, e.failure_count, e.status, e.reason
from unnest($1::bytea[]) with ordinality v(id, n) join endpoint e on e.id >= v.id and e.id <= v.id order by v.n
