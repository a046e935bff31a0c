insert into dismissed (delivery, note, at) values ($1, $2, $3)
on conflict (delivery) do update set note = excluded.note, at = excluded.at
