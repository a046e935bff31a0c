delete from replayed where original = any($1::bytea[])
