-- Finished originals whose endpoint exists, and whose event exists with its body.
select json_group_array(json_array(
  hex(v.original), hex(v.replacement),
  exists (select 1 from replayed r where r.original = v.original),
  exists (select 1 from delivery d where d.id = v.replacement)
    or exists (select 1 from attempt b where b.delivery = v.replacement)
))
from (select column1 as original, column2 as replacement from (values {rows:2}) limit ?) v
cross join attempt a on a.delivery = v.original and a.end is not null
cross join event e on e.id = a.event and e.body is not null
cross join endpoint p on p.id = a.endpoint
