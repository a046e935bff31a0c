select t.id, t.name, t.strict, t.created_at from (select column1 as id from (values {rows:1}) limit ?) v
cross join tenant t on t.id = v.id
