-- The partitions of tables as one value, which changes when one is added, dropped or replaced.
select string_agg(inhrelid::text, ' ' order by inhrelid) from pg_inherits
where inhparent in ('attempt'::regclass, 'event'::regclass)
