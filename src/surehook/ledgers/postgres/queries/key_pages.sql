select pg_relation_size('idempotency') / current_setting('block_size')::bigint
