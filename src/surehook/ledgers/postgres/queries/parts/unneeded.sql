-- No unfinished delivery and no dead letter needs the event `e`.
not exists (
  select 1 from delivery d
  where d.id >= substr(e.id, 1, 10) || '\x000000000000'::bytea
    and d.id <= substr(e.id, 1, 10) || '\xffffffffffff'::bytea and d.event = e.id
)
and not exists (
  select 1 from dead_letter l join attempt a on a.delivery = l.delivery
  where l.delivery >= substr(e.id, 1, 10) || '\x000000000000'::bytea
    and l.delivery <= substr(e.id, 1, 10) || '\xffffffffffff'::bytea and a.event = e.id
)
