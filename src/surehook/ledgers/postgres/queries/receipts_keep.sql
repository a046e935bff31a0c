update receipt r set stage = v.stage, said = v.said, finalize_by = v.finalize_by, changed_at = $6
from unnest($1::bytea[], $2::smallint[], $3::bytea[], $4::bigint[]) v(event, stage, said, finalize_by)
where r.event = v.event and r.endpoint = $5
