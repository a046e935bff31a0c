delete from {partition} where delivery = any($1::bytea[])
