-- The events that the notes name keep their bodies.
with noted as (
  delete from retiring_note returning event
), events as (
  select distinct event || '\x000000000000'::bytea as low, event || '\xffffffffffff'::bytea as high from noted
)
insert into event_stays_{day}
select e.* from events n join event_day_{day} e on e.id >= n.low and e.id <= n.high
on conflict (id) do update set body = excluded.body
