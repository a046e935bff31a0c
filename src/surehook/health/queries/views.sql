-- Parameters: tenants, keys, since, limit. Reads the breakers asked for, and the oldest changes after `since`.
(select b.* from unnest($1::text[], $2::text[]) as asked (tenant, key) join health_breaker b using (tenant, key))
union
(select * from health_breaker where generation > $3 order by generation limit $4)
