insert into breaker_closed as known (tenant, key, generation)
select * from unnest($1::text[], $2::text[], $3::bigint[])
on conflict (tenant, key) do update set generation = excluded.generation where known.generation < excluded.generation
