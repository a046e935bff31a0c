insert into notice (id, at, kind, tenant, endpoint, delivery, detail)
select * from unnest($1::bytea[], $2::bigint[], $3::text[], $4::text[], $5::bytea[], $6::bytea[], $7::text[])
on conflict do nothing
