-- Only from the position that the walker saw last, so that only one of two walkers goes on.
update replay set state = $3, matched = $4, created = $5, finished_at = $6, position = $7
where id = $1 and state = 'running' and position is not distinct from $2
