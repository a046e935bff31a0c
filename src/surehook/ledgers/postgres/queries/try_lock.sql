-- Held until it is unlocked or the session ends; false where another has it.
select pg_try_advisory_lock($1)
