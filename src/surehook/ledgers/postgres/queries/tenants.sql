select t.id, t.name, t.strict, t.created_at from unnest($1::text[]) v(id) cross join lateral (select * from tenant where id = v.id offset 0) t
