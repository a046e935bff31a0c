-- Held until the transaction ends.
select pg_advisory_xact_lock($1)
