-- The schema in which tables are created, the right to do so, and a table there that another role owns.
select
  current_schema()::text as schema,
  has_schema_privilege(current_schema(), 'create') as may_create,
  (
    select c.relname::text from pg_class c
    where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p')
      and not pg_has_role(c.relowner, 'usage')
    order by c.relname limit 1
  ) as "foreign"
