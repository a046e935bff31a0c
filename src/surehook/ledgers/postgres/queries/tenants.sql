select id, name, strict, created_at from tenant order by id
