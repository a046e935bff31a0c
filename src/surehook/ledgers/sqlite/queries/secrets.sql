select s.id, s.endpoint, s.kind, s.material, s.created_at, s.expires_at
from (select column1 as id from (values {rows:1}) limit ?) v
cross join secret s on s.endpoint = v.id
order by s.id
