-- A loose scan: from each group one step to the next, past all its rows.
with recursive parking(endpoint, parked) as (
  select * from (
    select endpoint, parked from delivery indexed by delivery_parked
    where parked is not null order by endpoint, parked limit 1
  )
  union all
  select
    (select d.endpoint from delivery d indexed by delivery_parked
     where d.parked is not null and (d.endpoint, d.parked) > (parking.endpoint, parking.parked)
     order by d.endpoint, d.parked limit 1),
    (select d.parked from delivery d indexed by delivery_parked
     where d.parked is not null and (d.endpoint, d.parked) > (parking.endpoint, parking.parked)
     order by d.endpoint, d.parked limit 1)
  from parking where parking.endpoint is not null
)
select endpoint, parked from parking where endpoint is not null
