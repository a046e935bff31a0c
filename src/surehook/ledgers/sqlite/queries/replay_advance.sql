-- Only from the place where its walker saw it last, so that of two walkers one goes on.
update replay set state = ?, matched = ?, created = ?, finished_at = ?, position = ?
where id = ? and state = 'running' and position is ?
