insert into retention_place (walk, place) values ($1, $2) on conflict (walk) do update set place = excluded.place
