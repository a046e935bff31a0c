-- Finished originals whose endpoint exists, and whose event exists with its body.
select
  v.original, v.replacement,
  exists (select 1 from replayed r where r.original = v.original) as was_replayed,
  exists (select 1 from delivery d where d.id = v.replacement)
    or exists (select 1 from attempt b where b.delivery = v.replacement) as is_born
from unnest($1::bytea[], $2::bytea[]) v(original, replacement)
join attempt a on a.delivery = v.original and a."end" is not null
join event e on e.id = a.event and e.body is not null
join endpoint p on p.id = a.endpoint
for share of e
