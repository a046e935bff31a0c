update endpoint e set
  failure_count = v.count, status = v.status, reason = v.reason, updated_at = coalesce(v.updated_at, e.updated_at)
from unnest($1::bytea[], $2::int[], $3::text[], $4::text[], $5::bigint[]) v(id, count, status, reason, updated_at)
where e.id >= v.id and e.id <= v.id
