select
  a.delivery, a.seq, a.lane, a.started_at, a.outcome, a.unknown, a.status, a.error, a.address, a.dns_us, a.connect_us,
  a.tls_us, a.first_byte_us, a.total_us, a.headers, a.body, a.truncated, a.next_at
from unnest($1::bytea[], $2::bigint[]) v(id, seq) cross join lateral (
  select * from attempt where delivery = v.id and seq = v.seq offset 0
) a
