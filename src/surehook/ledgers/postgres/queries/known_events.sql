select e.id, e.tenant, e.digest, e.fan_out from unnest($1::bytea[]) v(id) join event e on e.id = v.id
