-- Lines that were added since, of the same deliveries and of those that came to be needed.
insert into attempt_left_{day}
select a.* from attempt_day_{day} a
where a.delivery in (
  select id from delivery where id >= $1 and id < $2
  union all
  select delivery from dead_letter where delivery >= $1 and delivery < $2
  union all
  select delivery from attempt_left_{day}
  union all
  select delivery from attempt_day_{day} where ctid >= $4 and "end" is not null and finished_at >= $3
) and not exists (select 1 from attempt_left_{day} l where l.delivery = a.delivery and l.seq = a.seq)
