-- Histories of a part of a day that are still needed: of unfinished deliveries, of dead letters, and of deliveries that were
-- finished late enough.
insert into attempt_stays_{day}
select a.* from attempt_day_{day} a
where a.delivery >= $1 and a.delivery < $2 and a.delivery in (
  select id from delivery where id >= $1 and id < $2
  union all
  select delivery from dead_letter where delivery >= $1 and delivery < $2
  union all
  select delivery from attempt_day_{day} where delivery >= $1 and delivery < $2 and "end" is not null and finished_at >= $3
)
on conflict do nothing
