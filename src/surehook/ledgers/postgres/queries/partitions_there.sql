-- Which partitions of tables there are, as one value: it changes when one comes, goes or is replaced.
select string_agg(inhrelid::text, ' ' order by inhrelid) from pg_inherits
where inhparent in ('attempt'::regclass, 'event'::regclass)
