insert into event_stays_{day}
select {columns} from event_day_{day} e
left join (
  select event as id from delivery where id >= $1 and id < $2
  union
  select a.event from dead_letter l join attempt a on a.delivery = l.delivery
  where l.delivery >= $1 and l.delivery < $2 and a.delivery >= $1 and a.delivery < $2
) needed on needed.id = e.id
where e.id >= $1 and e.id < $2
on conflict do nothing
