insert into health_busy (endpoint, node, until) select unnest($1::bytea[]), $2, $3
on conflict (endpoint, node) do update set until = excluded.until
