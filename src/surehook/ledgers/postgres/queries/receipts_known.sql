-- Those of the endpoint's deliveries (each with its event) that exist or existed.
select v.delivery, v.event from unnest($1::bytea[], $2::bytea[]) v(delivery, event)
where exists (select 1 from delivery d where d.id = v.delivery and d.event = v.event and d.endpoint = $3)
or exists (select 1 from attempt a where a.delivery = v.delivery and a.event = v.event and a.endpoint = $3)
