select d.id, d.attempt
from (select column1 as id from (values {rows:1}) limit ?) v
cross join delivery d on d.id = v.id
where d.holder = ?
