-- Finished deliveries that the node holds are moved to the last rows of their histories.
with fence as materialized (
  select number from node where id = $1 and buried_at is null for share
), gone as (
  delete from delivery d using fence f, (
    select
      unnest($4::bytea[]) as id, unnest($5::int[]) as attempt, unnest($6::bigint[]) as seq,
      unnest($7::smallint[]) as lane, unnest($8::bigint[]) as started_at, unnest($9::text[]) as outcome,
      unnest($10::bool[]) as unknown, unnest($11::smallint[]) as status, unnest($12::text[]) as error,
      unnest($13::text[]) as address, unnest($14::bigint[]) as dns_us, unnest($15::bigint[]) as connect_us,
      unnest($16::bigint[]) as tls_us, unnest($17::bigint[]) as first_byte_us,
      unnest($18::bigint[]) as total_us, unnest($19::bytea[]) as headers, unnest($20::bytea[]) as body,
      unnest($21::bool[]) as truncated, unnest($22::bigint[]) as next_at, unnest($23::text[]) as "end",
      unnest($24::text[]) as reason
  ) v
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
)
