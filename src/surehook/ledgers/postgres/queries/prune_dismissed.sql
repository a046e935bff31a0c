delete from dismissed where delivery = any($1::bytea[])
