select
  d.id, d.event, d.endpoint, d.tenant, d.type, d.lane, d.attempt, d.due_at, d.born_at, e.body, d.stood_ms,
  d.spared, d.freed, d.overdue_at, d.replay_of, d.outcome, d.unknown, d.parked, d.holder is not null, n.id
from delivery d join event e on e.id = d.event left join node n on n.number = d.holder
where d.id = $1
