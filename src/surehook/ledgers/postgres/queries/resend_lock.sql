select 1 from attempt where delivery = any($1::bytea[]) and "end" is not null order by delivery for no key update
