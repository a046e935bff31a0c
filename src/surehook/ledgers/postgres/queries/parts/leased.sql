-- A leased delivery, in the order of its fields.
h.id, h.event, h.endpoint, h.tenant, h.type, h.lane, h.attempt, h.due_at, h.born_at, h.body, h.stood_ms, h.spared, h.freed,
h.overdue_at, h.replay_of, h.outcome, h.unknown, h.parked, true
