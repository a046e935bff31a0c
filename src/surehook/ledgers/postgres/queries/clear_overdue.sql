update delivery d set overdue_at = null from unnest($1::bytea[]) v(id)
where d.id >= v.id and d.id <= v.id and num_nonnulls(d.overdue_at) = 1 returning d.id
