-- Bodies that came to be needed since.
update event_left_{day} l set body = e.body from event_day_{day} e
where l.id = e.id and l.body is null and e.id in (
  select event from delivery where id >= $1 and id < $2
  union all
  select a.event from dead_letter l join attempt a on a.delivery = l.delivery
  where l.delivery >= $1 and l.delivery < $2
)
