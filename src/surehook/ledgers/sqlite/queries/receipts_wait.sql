-- A wait begins unless an end was told (core/receipt_state.py): `rejected` (3) of this very delivery, or `finalized` (4).
insert into receipt (event, endpoint, tenant, delivery, finalize_by, changed_at)
select v.column1, v.column2, v.column3, v.column4, v.column5, ?
from (select * from (values {rows:5}) limit ?) v
where true
on conflict (event, endpoint) do update
set delivery = excluded.delivery, finalize_by = excluded.finalize_by, changed_at = excluded.changed_at
where receipt.stage < 3 or (receipt.stage = 3 and receipt.delivery <> excluded.delivery)
