-- Only from the position that the walker saw last, so that only one of two walkers goes on.
update replay set state = ?, matched = ?, created = ?, finished_at = ?, position = ?
where id = ? and state = 'running' and position is ?
