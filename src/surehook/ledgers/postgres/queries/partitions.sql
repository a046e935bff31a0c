-- Partitions of tables with their sizes in bytes, without indexes.
select i.inhparent::regclass::text as parent, c.relname as name, pg_table_size(c.oid) as bytes,
  obj_description(c.oid, 'pg_class') as note
from pg_inherits i join pg_class c on c.oid = i.inhrelid
where i.inhparent = any($1::text[]::regclass[])
