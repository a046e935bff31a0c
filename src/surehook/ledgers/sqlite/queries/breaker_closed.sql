insert into breaker_closed (tenant, key, generation) values (?, ?, ?)
on conflict (tenant, key) do update set generation = excluded.generation where generation < excluded.generation
