-- Those of these deliveries that exist or existed.
select v.id
from (select column1 as id from (values {rows:1}) limit ?) v
where exists (select 1 from delivery d where d.id = v.id) or exists (select 1 from attempt a where a.delivery = v.id)
