select r.event, r.delivery, r.said, r.finalize_by from receipt r
where r.event = any($1::bytea[]) and r.endpoint = $2 order by r.event for update
