-- $1 lane. The last column tells if the sweeper lives: its row is there and not evicted.
select generation, passed, sweeper, exists (select 1 from node n where n.id = h.sweeper and n.buried_at is null)
from handoff h where lane = $1::smallint
