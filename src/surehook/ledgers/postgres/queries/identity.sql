-- Identifies this database: the cluster's own number, which a standby shares, and the database's number in it.
-- Empty if the first may not be read.
select case when has_function_privilege('pg_catalog.pg_control_system()', 'execute') then (
  select substr(md5(s.system_identifier::text || ' ' || d.oid::text), 1, 8)
  from pg_catalog.pg_control_system() s, pg_catalog.pg_database d where d.datname = current_database()
) end
