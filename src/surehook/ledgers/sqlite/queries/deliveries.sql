-- Whole deliveries in one packed row: each further row would cost the reader the interpreter once more. Large bodies are null
-- here, since as text they cost more than a statement each (`large_body`).
select json_group_array(json_array(
  hex(d.id), hex(d.event), hex(d.endpoint), d.tenant, d.type, d.lane, d.attempt, d.due_at, d.born_at,
  iif(length(e.body) > 32768, null, hex(e.body)),
  d.stood_ms, d.spared, d.freed, d.overdue_at, hex(d.replay_of), d.outcome, d.unknown, d.parked,
  d.holder is not null
))
from (select column1 as id from (values {rows:1}) limit ?) v
cross join delivery d on d.id = v.id
cross join event e on e.id = d.event
