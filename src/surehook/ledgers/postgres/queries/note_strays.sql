-- Notes of those of the rows that are ready. $1 ids, $2 due by, $3 the most notes of a tenant, $4 of all.
with ready as materialized (
  select d.id, d.lane, d.tenant, d.endpoint,
    (row_number() over (partition by d.lane, d.tenant, d.endpoint order by d.id) - 1) / 64 as part
  from unnest($1::bytea[]) v(id) cross join lateral (
    select * from delivery where id = v.id and num_nonnulls(holder, parked) = 0 and due_at <= $2 offset 0
  ) d
), notes as materialized (
  select lane, tenant, endpoint, array_agg(id order by id) as rows, row_number() over (partition by tenant) as place
  from ready group by lane, tenant, endpoint, part
), there as materialized (
  select tenant, count(*) as notes from stray group by tenant
)
insert into stray (lane, told, tenant, endpoint, rows)
select lane, (select pg_current_xact_id()::text::bigint), tenant, endpoint, rows from notes n
where place + coalesce((select t.notes from there t where t.tenant = n.tenant), 0) <= $3
order by place limit greatest(0, $4 - coalesce((select sum(notes) from there), 0))
