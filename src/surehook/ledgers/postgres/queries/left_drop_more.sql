-- The events that the notes name, and their histories. A note that is visible names rows that are visible.
with noted as (
  delete from retiring_note returning event
), events as (
  select distinct event || '\x000000000000'::bytea as low, event || '\xffffffffffff'::bytea as high from noted
), more_lines as (
  insert into attempt_stays_{day}
  select a.* from events n join attempt_day_{day} a on a.delivery >= n.low and a.delivery <= n.high
  on conflict do nothing
)
insert into event_stays_{day}
select e.* from events n join event_day_{day} e on e.id >= n.low and e.id <= n.high
on conflict do nothing
