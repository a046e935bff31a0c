-- tenants, keys, and by breaker the last bucket that has left the window
select tenant, key, sum(calls)::bigint as calls, sum(failures)::bigint as failures
from unnest($1::text[], $2::text[], $3::bigint[]) as asked (tenant, key, oldest)
join health_count using (tenant, key)
where number > oldest
group by tenant, key
