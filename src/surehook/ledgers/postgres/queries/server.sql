select
  current_setting('server_version_num')::int as version, current_setting('server_encoding') as encoding,
  pg_is_in_recovery() as standby, current_setting('default_transaction_read_only') as read_only,
  current_user::text as role, current_setting('fsync') as fsync, current_setting('full_page_writes') as full_page_writes,
  (select reset_val from pg_settings where name = 'synchronous_commit') as synchronous_commit
