-- Whether an unfinished delivery or a dead letter still needs the event.
select
  exists (select 1 from delivery where id between ? and ? and event = ?)
  or exists (
    select 1 from dead_letter l join attempt a on a.delivery = l.delivery
    where l.delivery between ? and ? and a.event = ?
  )
