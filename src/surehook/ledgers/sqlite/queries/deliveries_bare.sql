-- Like `deliveries`, without bodies: for reads that send nothing.
select json_group_array(json_array(
  hex(d.id), hex(d.event), hex(d.endpoint), d.tenant, d.type, d.lane, d.attempt, d.due_at, d.born_at, '',
  d.stood_ms, d.spared, d.freed, d.overdue_at, hex(d.replay_of), d.outcome, d.unknown, d.parked,
  d.holder is not null
))
from (select column1 as id from (values {rows:1}) limit ?) v
cross join delivery d on d.id = v.id
