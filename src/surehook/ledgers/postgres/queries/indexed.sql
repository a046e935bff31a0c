-- Partitions of `attempt` and `event`, and receipts, with their bytes and the indexes of lists: the column, and a mark for an
-- index of the dead only.
select
  c.relname as name, t.parent, pg_relation_size(c.oid) as bytes,
  array(
    select case when pg_get_expr(i.indpred, i.indrelid) like '%''dead''%' then 'dead ' else '' end || a.attname
    from pg_index i join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[0]
    where i.indrelid = c.oid and i.indisvalid and not i.indisprimary and i.indnkeyatts = 2
  ) as indexes
from (
  select inhrelid as oid, inhparent::regclass::text as parent from pg_inherits
  where inhparent in ('attempt'::regclass, 'event'::regclass)
  union all select 'receipt'::regclass, 'receipt'
) t join pg_class c on c.oid = t.oid
