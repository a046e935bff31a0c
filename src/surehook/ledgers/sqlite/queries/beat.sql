insert into beat (node, counter, at) values (?, ?, ?)
on conflict (node) do update set counter = excluded.counter, at = excluded.at
