update receipt r set finalize_by = null, changed_at = $5
from unnest($1::bytea[], $2::bytea[], $3::bytea[], $4::bigint[]) v(event, endpoint, delivery, finalize_by)
where r.event = v.event and r.endpoint = v.endpoint and r.delivery = v.delivery and r.finalize_by = v.finalize_by
returning r.delivery
