-- Endpoints whose failure count a window of successes would change.
select e.id
from (select column1 as id from (values {rows:1}) limit ?) v
cross join endpoint e on e.id = v.id
where e.failure_count <> 0
