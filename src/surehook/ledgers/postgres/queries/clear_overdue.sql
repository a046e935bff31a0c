update delivery d set overdue_at = null from unnest($1::bytea[]) v(id)
where d.id = v.id and d.overdue_at is not null returning d.id
