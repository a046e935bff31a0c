-- The columns that differ at birth; the others have their defaults.
insert into delivery (
  id, event, endpoint, tenant, type, lane, attempt, due_at, born_at, overdue_at, holder, parked, parked_at
)
select * from (values {rows:13}) limit ?
