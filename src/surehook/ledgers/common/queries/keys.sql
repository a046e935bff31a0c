select id, digest, name, created_at from api_key order by id
