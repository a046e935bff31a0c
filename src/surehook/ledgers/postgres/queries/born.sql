-- Those of these deliveries that exist or existed.
select v.id from unnest($1::bytea[]) v(id)
where exists (select 1 from delivery d where d.id >= v.id and d.id <= v.id)
  or exists (select 1 from attempt a where a.delivery >= v.id and a.delivery <= v.id)
