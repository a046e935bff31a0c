delete from retention_place where walk = any($1::text[])
