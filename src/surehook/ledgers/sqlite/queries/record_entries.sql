-- The lease check and the history row in one: nothing is inserted for a row that this node does not hold.
-- A row that is no request has the outcome of the last one, for lists.
insert into attempt (
  delivery, seq, lane, started_at, outcome, unknown, status, error, address,
  dns_us, connect_us, tls_us, first_byte_us, total_us, truncated, next_at,
  end, reason, finished_at, replay_of, tenant, endpoint, type, event, headers, body
)
select
  d.id, v.column2, v.column3, v.column4, iif(v.column2 % 64 = 63, v.column5, d.outcome),
  iif(v.column2 % 64 = 63, v.column6, d.unknown), v.column7, v.column8, v.column9,
  v.column10, v.column11, v.column12, v.column13, v.column14, v.column15, v.column16,
  v.column17, v.column18, iif(v.column17 is null, null, ?), d.replay_of, d.tenant, d.endpoint, d.type, d.event,
  v.column19, v.column20
from (select * from (values {rows:20}) limit ?) v
cross join delivery d on d.id = v.column1
where d.holder = ? and d.attempt = v.column2 / 64
