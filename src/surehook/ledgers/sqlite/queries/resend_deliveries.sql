insert into delivery (
  id, event, endpoint, tenant, type, lane, attempt, due_at, born_at, overdue_at, parked, parked_at, replay_of
)
select * from (values {rows:13}) limit ?
