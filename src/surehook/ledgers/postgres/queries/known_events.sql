select e.id, e.tenant, e.digest, e.fan_out from unnest($1::bytea[]) v(id) cross join lateral (select * from event where id = v.id offset 0) e
