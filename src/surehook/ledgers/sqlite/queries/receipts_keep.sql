insert into receipt (event, endpoint, tenant, delivery, stage, said, finalize_by, changed_at)
select * from (select * from (values {rows:8}) limit ?)
where true
on conflict (event, endpoint) do update
set stage = excluded.stage, said = excluded.said, finalize_by = excluded.finalize_by, changed_at = excluded.changed_at
