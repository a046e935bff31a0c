-- The order of rows is that of Python, on every node: so no two wait for each other.
-- Parameters: tenants, keys, states, reasons, opened_ats, probe_ats, generations, agains; node, now. Returns what took effect.
-- Only columns of the table are to be seen where a row is there already: `probe_until` says there whether it is told again. It
-- means nothing in a row without a prober, as a new one is.
insert into health_breaker as known (tenant, key, state, reason, opened_at, probe_at, generation, author, probe_until)
select tenant, key, state, reason, opened_at, probe_at,
  case when again then generation else greatest($10::bigint, generation) end, $9::bytea, again::int
from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::bigint[], $8::boolean[])
  as told (tenant, key, state, reason, opened_at, probe_at, generation, again)
order by tenant collate "C", key collate "C"
on conflict (tenant, key) do update set
  state = excluded.state, reason = excluded.reason, opened_at = excluded.opened_at, probe_at = excluded.probe_at,
  generation = greatest(excluded.generation, known.generation + 1), prober = null,
  author = case when excluded.state = 'closed' and known.state = 'closed' then known.author else excluded.author end
where (excluded.probe_until = 0 or known.generation < excluded.generation)
  and (excluded.state = 'closed' or known.state = 'closed' or known.reason is distinct from excluded.reason
    or (excluded.probe_until = 0 and known.prober = excluded.author))
returning tenant, key, state
