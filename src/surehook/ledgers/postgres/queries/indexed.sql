-- Partitions of `attempt`, and the columns by which their last lines are indexed.
select
  c.relname as name,
  array(
    select a.attname::text from pg_index i join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[0]
    where i.indrelid = c.oid and i.indisvalid and i.indpred is not null and i.indnkeyatts = 2
  ) as columns
from pg_inherits p join pg_class c on c.oid = p.inhrelid
where p.inhparent = 'attempt'::regclass
