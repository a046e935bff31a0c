select id, endpoint, kind, material, created_at, expires_at from secret order by id
