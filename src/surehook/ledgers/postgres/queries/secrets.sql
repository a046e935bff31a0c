select s.id, s.endpoint, s.kind, s.material, s.created_at, s.expires_at from unnest($1::bytea[]) v(id) cross join lateral (select * from secret where endpoint = v.id offset 0) s order by s.id
