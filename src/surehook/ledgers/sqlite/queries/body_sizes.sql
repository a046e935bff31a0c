-- Event and body length of each of these deliveries, in their order. A length is read without the bytes.
select json_group_array(json_array(hex(d.event), length(e.body)))
from (select column1 as id from (values {rows:1}) limit ?) v
cross join delivery d on d.id = v.id
cross join event e on e.id = d.event
