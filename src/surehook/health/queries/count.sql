insert into health_count as known (tenant, key, number, calls, failures, until)
select * from unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[])
on conflict (tenant, key, number) do update set
  calls = known.calls + excluded.calls, failures = known.failures + excluded.failures, until = excluded.until
