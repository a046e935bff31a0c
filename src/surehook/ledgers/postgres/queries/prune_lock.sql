select 1 from {partition} where id = any($1::bytea[]) order by id for update
