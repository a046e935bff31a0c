-- Those of the deliveries (each with event and endpoint) that exist or existed.
select distinct v.column1, v.column2
from (select * from (values {rows:3}) limit ?) v
where exists (select 1 from delivery d where d.id = v.column1 and d.event = v.column2 and d.endpoint = v.column3)
or exists (select 1 from attempt a where a.delivery = v.column1 and a.event = v.column2 and a.endpoint = v.column3)
