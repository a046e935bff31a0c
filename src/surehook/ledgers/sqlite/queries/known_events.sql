select e.id, e.tenant, e.digest, e.fan_out
from (select column1 as id from (values {rows:1}) limit ?) v
cross join event e on e.id = v.id
