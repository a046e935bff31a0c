-- Only rows that are unheld and unchanged since they were read. A history row that is no request has the outcome of the last one,
-- for lists.
with gone as (
  delete from delivery d using unnest($1::bytea[], $5::int[], $6::bigint[], $7::bytea[]) v(id, attempt, born_at, request_headers)
  where d.id >= v.id and d.id <= v.id and d.holder is null
    and d.attempt = coalesce(v.attempt, d.attempt) and d.born_at = coalesce(v.born_at, d.born_at)
  returning d.*, v.request_headers
), lines as (
  insert into attempt (
    delivery, seq, lane, started_at, outcome, unknown, truncated, "end", reason, finished_at, replay_of, tenant, endpoint,
    type, event, headers, body
  )
  select
    id, attempt * 64::bigint + 62, lane, $2, outcome, unknown, false, $3, $4, $2, replay_of, tenant, endpoint, type, event,
    '', ''
  from gone
), dead as (
  insert into dead_letter (delivery, request_headers) select id, request_headers from gone where $3::text = 'dead'
  on conflict do nothing
)
select id from gone
