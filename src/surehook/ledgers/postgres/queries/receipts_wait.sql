-- A wait begins unless an end was told (core/receipt_state.py): `rejected` (3) of this very delivery, or `finalized` (4).
insert into receipt as r (event, endpoint, tenant, delivery, finalize_by, changed_at)
select v.event, v.endpoint, v.tenant, v.delivery, v.finalize_by, $6
from unnest($1::bytea[], $2::bytea[], $3::text[], $4::bytea[], $5::bigint[]) v(event, endpoint, tenant, delivery, finalize_by)
order by v.event, v.endpoint
on conflict (event, endpoint) do update
set delivery = excluded.delivery, finalize_by = excluded.finalize_by, changed_at = excluded.changed_at
where r.stage < 3 or (r.stage = 3 and r.delivery <> excluded.delivery)
