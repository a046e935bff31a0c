update replay set
  filter = ?, dry_run = ?, state = ?, matched = ?, created = ?, created_at = ?, finished_at = ?, position = ?
where id = ?
