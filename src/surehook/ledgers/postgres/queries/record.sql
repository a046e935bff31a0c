-- What a window means for the rows in hand: finished ones leave the table, the others go on, unheld. Both get a line
-- where there is an entry. $3 now, $4… entries of finished ones by
-- column, $25… those of the others, and what they become.
with fence as materialized (
  select number from node where id = $1 and buried_at is null for share
), gone as (
  delete from delivery d using fence f, unnest(
    $4::bytea[], $5::int[], $6::bigint[], $7::smallint[], $8::bigint[], $9::text[], $10::bool[], $11::smallint[],
    $12::text[], $13::text[], $14::bigint[], $15::bigint[], $16::bigint[], $17::bigint[], $18::bigint[], $19::bytea[], $20::bytea[],
    $21::bool[], $22::bigint[], $23::text[], $24::text[]
  ) v (
    id, attempt, seq, lane, started_at, outcome, unknown, status, error, address, dns_us, connect_us, tls_us,
    first_byte_us, total_us, headers, body, truncated, next_at, "end", reason
  )
  where d.id >= v.id and d.id <= v.id and d.attempt = v.attempt and d.holder is not distinct from f.number
  returning
    d.id, v.seq, v.lane, v.started_at,
    case when v.seq & 63 = 63 then v.outcome else d.outcome end as outcome,
    case when v.seq & 63 = 63 then coalesce(v.unknown, false) else d.unknown end as unknown,
    v.status, v.error, v.address, v.dns_us, v.connect_us, v.tls_us, v.first_byte_us, v.total_us,
    coalesce(v.headers, '') as headers, coalesce(v.body, '') as body, coalesce(v.truncated, false) as truncated,
    v.next_at, v."end", v.reason, d.replay_of, d.tenant, d.endpoint, d.type, d.event
), lines as (
  insert into attempt (
    delivery, seq, lane, started_at, outcome, unknown, status, error, address, dns_us, connect_us, tls_us,
    first_byte_us, total_us, headers, body, truncated, next_at, "end", reason, replay_of, tenant, endpoint, type, event,
    finished_at
  )
  select gone.*, $3 from gone
), dead as (
  insert into dead_letter (delivery) select id from gone where "end" = 'dead' on conflict do nothing
), moved as (
  update delivery d set
    holder = null, lane = v.next_lane, attempt = v.next_attempt, due_at = v.due_at, parked = v.parked,
    parked_at = case when v.parked is not null then $3 end, spared = v.spared,
    outcome = case when v.seq & 63 = 63 then v.outcome else d.outcome end,
    unknown = case when v.seq & 63 = 63 then coalesce(v.unknown, false) else d.unknown end,
    freed = case when v.seq & 63 = 63 then 0 else d.freed end
  from fence f, unnest(
    $25::bytea[], $26::int[], $27::bigint[], $28::smallint[], $29::bigint[], $30::text[], $31::bool[],
    $32::smallint[], $33::text[], $34::text[], $35::bigint[], $36::bigint[], $37::bigint[], $38::bigint[], $39::bigint[],
    $40::bytea[], $41::bytea[], $42::bool[], $43::bigint[], $44::smallint[], $45::int[], $46::bigint[],
    $47::text[], $48::int[]
  ) v (
    id, attempt, seq, lane, started_at, outcome, unknown, status, error, address, dns_us, connect_us, tls_us,
    first_byte_us, total_us, headers, body, truncated, next_at, next_lane, next_attempt, due_at, parked, spared
  )
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
