insert into delivery (
  id, event, endpoint, tenant, type, lane, attempt, due_at, born_at, overdue_at, holder, parked, parked_at,
  handed
)
select
  v.id, v.event, v.endpoint, v.tenant, v.type, v.lane, coalesce(v.attempt, 1), coalesce(v.due_at, $1),
  coalesce(v.born_at, $1), v.overdue_at, case when v.is_held then $2::bigint end, v.parked,
  case when v.parked is not null then $1 end, coalesce(v.handed, 0)
from unnest(
  $3::bytea[], $4::bytea[], $5::bytea[], $6::text[], $7::text[], $8::smallint[], $9::int[], $10::bigint[],
  $11::bigint[], $12::bigint[], $13::bool[], $14::text[], $15::int[]
) v (id, event, endpoint, tenant, type, lane, attempt, due_at, born_at, overdue_at, is_held, parked, handed)
