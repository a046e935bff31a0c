-- Those of these partitions that exist.
select c.relname from unnest($1::text[]) v(name)
join pg_class c on c.relname = v.name and c.relnamespace = current_schema()::regnamespace
