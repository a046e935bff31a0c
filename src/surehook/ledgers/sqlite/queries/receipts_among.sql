select r.event, r.delivery, r.said, r.finalize_by
from (select * from (values {rows:2}) limit ?) v
cross join receipt r on r.event = v.column1 and r.endpoint = v.column2
