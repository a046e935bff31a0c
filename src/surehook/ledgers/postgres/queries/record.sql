-- The rows of a window that the node holds: finished ones leave the table, the others go on, unheld. Both get a history row if
-- there is an entry. $3 now, $4… entries of finished ones by column, $25… entries of the others and their new values, $49 dead
-- letters with the headers of their last requests.
{{record_finished}}, dead as (
  insert into dead_letter (delivery, request_headers)
  select g.id, v.request_headers
  from gone g left join (select unnest($49::bytea[]) as id, unnest($50::bytea[]) as request_headers) v on v.id = g.id
  where g."end" = 'dead' on conflict do nothing
), moved as (
  update delivery d set
    holder = null, lane = v.next_lane, attempt = v.next_attempt, due_at = v.due_at, parked = v.parked,
    parked_at = case when v.parked is not null then $3 end, spared = v.spared,
    outcome = case when v.seq & 63 = 63 then v.outcome else d.outcome end,
    unknown = case when v.seq & 63 = 63 then coalesce(v.unknown, false) else d.unknown end,
    freed = case when v.seq & 63 = 63 then 0 else d.freed end
  from fence f, (
    select
      unnest($25::bytea[]) as id, unnest($26::int[]) as attempt, unnest($27::bigint[]) as seq,
      unnest($28::smallint[]) as lane, unnest($29::bigint[]) as started_at, unnest($30::text[]) as outcome,
      unnest($31::bool[]) as unknown, unnest($32::smallint[]) as status, unnest($33::text[]) as error,
      unnest($34::text[]) as address, unnest($35::bigint[]) as dns_us, unnest($36::bigint[]) as connect_us,
      unnest($37::bigint[]) as tls_us, unnest($38::bigint[]) as first_byte_us,
      unnest($39::bigint[]) as total_us, unnest($40::bytea[]) as headers, unnest($41::bytea[]) as body,
      unnest($42::bool[]) as truncated, unnest($43::bigint[]) as next_at,
      unnest($44::smallint[]) as next_lane, unnest($45::int[]) as next_attempt,
      unnest($46::bigint[]) as due_at, unnest($47::text[]) as parked, unnest($48::int[]) as spared
  ) v
  where d.id >= v.id and d.id <= v.id and d.attempt = v.attempt and d.holder is not distinct from f.number
  returning
    d.id, v.seq, v.lane, v.started_at, d.outcome, d.unknown, v.status, v.error, v.address, v.dns_us, v.connect_us,
    v.tls_us, v.first_byte_us, v.total_us, coalesce(v.headers, '') as headers, coalesce(v.body, '') as body,
    coalesce(v.truncated, false) as truncated, v.next_at, d.replay_of, d.tenant, d.endpoint, d.type, d.event
), more_lines as (
  insert into attempt (
    delivery, seq, lane, started_at, outcome, unknown, status, error, address, dns_us, connect_us, tls_us,
    first_byte_us, total_us, headers, body, truncated, next_at, replay_of, tenant, endpoint, type, event
  )
  select * from moved where seq is not null
), counted as (
  select (select count(*) from gone) + (select count(*) from moved) as n
)
select
  f.number, case when c.n < $2 then array(select id from gone union all select id from moved) end
from fence f, counted c
