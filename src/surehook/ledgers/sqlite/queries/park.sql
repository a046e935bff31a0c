update delivery set parked = ?, parked_at = ?, holder = null
from (select column1 as id, column2 as attempt from (values {rows:2}) limit ?) v
where delivery.id = v.id and delivery.attempt = v.attempt and +delivery.holder = ?
