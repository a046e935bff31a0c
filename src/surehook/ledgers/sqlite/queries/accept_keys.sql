-- An expired key is replaced, and moves to the end of the row numbers that pruning walks.
insert or replace into idempotency (tenant, key, event, digest, fan_out, expires_at)
select * from (values {rows:6}) limit ?
