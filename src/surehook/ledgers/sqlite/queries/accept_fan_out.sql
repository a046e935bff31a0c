-- Deliveries of one event that differ only in id and endpoint, which come as sixteen bytes each, one after the other.
insert into delivery (
  id, endpoint, event, tenant, type, lane, attempt, due_at, born_at, overdue_at, holder, parked, parked_at
)
with recursive v(at) as (select 1 union all select at + 32 from v where at < ?)
select substr(?, at, 16), substr(?, at + 16, 16), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?
from v
