-- What is new about a delivery at its birth; the rest are the columns' defaults.
insert into delivery (
  id, event, endpoint, tenant, type, lane, attempt, due_at, born_at, overdue_at, holder, parked, parked_at
)
select * from (values {rows:13}) limit ?
