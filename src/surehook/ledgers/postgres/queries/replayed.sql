insert into replayed (original, replacement, at)
select v.original, v.replacement, $3 from unnest($1::bytea[], $2::bytea[]) v(original, replacement)
on conflict (original) do update set replacement = excluded.replacement, at = excluded.at
