select exists (select 1 from pg_class where relnamespace = current_schema()::regnamespace and relkind in ('r', 'p'))
