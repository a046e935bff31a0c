-- Held until unlocked or the session ends; false if another session has it.
select pg_try_advisory_lock($1)
