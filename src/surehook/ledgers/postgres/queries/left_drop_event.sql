-- Events of a part of a day that an unfinished delivery or a dead letter needs, or that were accepted long after their ids were
-- made. One list: beside an `or`, a list too long for memory would be read again for each event.
insert into event_stays_{day}
select e.* from event_day_{day} e
where e.id >= $1 and e.id < $2 and e.id in (
  select event from delivery where id >= $1 and id < $2
  union all
  select a.event from dead_letter l join attempt_day_{day} a on a.delivery = l.delivery
  where l.delivery >= $1 and l.delivery < $2 and a.delivery >= $1 and a.delivery < $2
  union all
  select id from event_day_{day} where id >= $1 and id < $2 and accepted_at >= $3
)
on conflict do nothing
