-- Parameters: tenant, key, node, until, now, the most that clocks may differ. An unknown breaker may be probed.
with taken as (
  update health_breaker set prober = $3, probe_until = $4
  where tenant = $1 and key = $2 and state = 'open' and (probe_at <= $5 or opened_at > $5 + $6::bigint)
    and (prober is null or prober = $3 or probe_until <= $5 or probe_until > $4 + $6::bigint)
  returning 1
)
select exists (select from taken)
    or not exists (select from health_breaker where tenant = $1 and key = $2)
