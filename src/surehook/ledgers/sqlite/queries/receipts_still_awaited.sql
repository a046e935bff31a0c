select json_group_array(hex(r.delivery))
from (select * from (values {rows:4}) limit ?) v
cross join receipt r on r.event = v.column1 and r.endpoint = v.column2
where r.delivery = v.column3 and r.finalize_by = v.column4
