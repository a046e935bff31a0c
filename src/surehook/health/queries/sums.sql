-- Parameters: tenants, keys; for each breaker the last bucket before the window, and the last one that a correct clock may count in.
select tenant, key, sum(calls)::bigint as calls, sum(failures)::bigint as failures
from unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[]) as asked (tenant, key, oldest, newest)
join health_count using (tenant, key)
where number > oldest and number <= newest
group by tenant, key
