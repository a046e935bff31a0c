delete from dead_letter where delivery = any($1::bytea[])
