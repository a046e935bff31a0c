-- Only from the place where its walker saw it last, so that of two walkers one goes on.
update replay set state = $3, matched = $4, created = $5, finished_at = $6, position = $7
where id = $1 and state = 'running' and position is not distinct from $2
