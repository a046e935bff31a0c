select t.id, t.name, t.strict, t.created_at from tenant t where t.id > $1 order by t.id limit $2
