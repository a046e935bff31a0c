insert into event_left_{day}
select e.* from event_day_{day} e
where e.id in (
  select event from delivery where id >= $1 and id < $2
  union all
  select a.event from dead_letter l join attempt a on a.delivery = l.delivery
  where l.delivery >= $1 and l.delivery < $2
  union all
  select id from event_day_{day} where ctid >= $4 and accepted_at >= $3
) and not exists (select 1 from event_left_{day} l where l.id = e.id)
