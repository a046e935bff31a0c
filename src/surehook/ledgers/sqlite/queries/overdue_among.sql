select json_group_array(hex(d.id))
from (select column1 as id from (values {rows:1}) limit ?) v
cross join delivery d on d.id = v.id
where d.overdue_at is not null
