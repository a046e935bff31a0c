-- History rows of one partition after a position: their number, the last one, and the deliveries that are finished, old enough
-- and no dead letters.
select
  count(*) as rows, (array_agg(delivery))[count(*)::int] as last, (array_agg(seq))[count(*)::int] as last_seq,
  coalesce(array_agg(delivery) filter (where is_old), '{}') as old
from (
  select
    a.delivery, a.seq,
    a."end" is not null and a.finished_at < $4
      and not (a."end" = 'dead' and exists (select 1 from dead_letter l where l.delivery = a.delivery)) as is_old
  from {partition} a
  where (a.delivery, a.seq) > ($1, $2) and a.delivery < $3
  order by a.delivery, a.seq limit $5
) looked
