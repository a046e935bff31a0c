insert into replay (id, filter, dry_run, state, matched, created, created_at, finished_at, position)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9) on conflict do nothing
