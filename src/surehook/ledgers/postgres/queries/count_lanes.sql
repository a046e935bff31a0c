-- Each unfinished, unparked delivery once, as of one instant; every part reads one partial index and no row.
select 'held' as kind, lane, count(*) as rows, null::bigint as oldest
from delivery where holder is not null group by lane
union all
select 'ready', lane, count(*), min(due_at)
from delivery where holder is null and parked is null and lane in (0, 1) and due_at <= $1 group by lane
union all
select 'scheduled', lane, count(*), null
from delivery where holder is null and parked is null and lane in (0, 1) and due_at > $1 group by lane
