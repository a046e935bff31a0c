-- A row that does not exist cannot be locked: insert it, then lock it.
insert into receipt (event, endpoint, tenant, delivery, changed_at)
select v.event, $3, $4, v.delivery, $5 from unnest($1::bytea[], $2::bytea[]) v(event, delivery) order by v.event
on conflict do nothing
