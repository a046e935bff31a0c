-- Finished deliveries, none of them dead: taken out of the table and into the last line of their histories.
-- $3 now; the other columns are those of an entry.
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
), counted as (
  select count(*) as n from gone
)
select f.number, case when c.n < $2 then array(select id from gone) end from fence f, counted c
