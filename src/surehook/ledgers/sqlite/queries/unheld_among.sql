-- Rows that are unheld and unchanged since they were read.
select json_group_array(hex(d.id))
from (select column1 as id, column2 as attempt, column3 as born_at from (values {rows:3}) limit ?) v
cross join delivery d on d.id = v.id
where d.holder is null and d.attempt = v.attempt and d.born_at = v.born_at
