update replay set
  filter = $2, dry_run = $3, state = $4, matched = $5, created = $6, created_at = $7, finished_at = $8, position = $9
where id = $1
