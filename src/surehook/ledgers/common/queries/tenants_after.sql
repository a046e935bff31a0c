select t.id, t.name, t.strict, t.created_at from tenant t where t.id > ? order by t.id limit ?
