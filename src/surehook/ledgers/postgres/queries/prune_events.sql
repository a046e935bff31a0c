-- Events of one partition after a position: their number, the last one, and the old ones (with a body, if bodies are asked for)
-- that no unfinished delivery and no dead letter needs. A delivery's id begins like that of its event. Joined instead, history
-- rows would be read for each event by a column without an index.
select
  count(*) as rows, (array_agg(id))[count(*)::int] as last, coalesce(array_agg(id) filter (where is_old), '{}') as old
from (
  select
    e.id,
    case when e.accepted_at < $3 and (not $4 or e.body is not null) then not (
      exists (
        select 1 from delivery d
        where d.id >= substr(e.id, 1, 10) || '\x000000000000'::bytea
          and d.id <= substr(e.id, 1, 10) || '\xffffffffffff'::bytea and d.event = e.id
      )
      or exists (
        select 1 from dead_letter l
        where l.delivery >= substr(e.id, 1, 10) || '\x000000000000'::bytea
          and l.delivery <= substr(e.id, 1, 10) || '\xffffffffffff'::bytea
          and (select true from attempt a where a.delivery = l.delivery and a.event = e.id limit 1)
      )
    ) else false end as is_old
  from {partition} e
  where e.id > $1 and e.id < $2
  order by e.id limit $5
) looked
