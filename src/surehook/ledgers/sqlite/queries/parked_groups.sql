-- A loose index scan: one step from each endpoint to the next, past all its rows, and likewise through its reasons.
with recursive endpoints(endpoint) as (
  select * from (
    select endpoint from delivery indexed by delivery_parked where parked is not null order by endpoint limit 1
  )
  union all
  select (
    select d.endpoint from delivery d indexed by delivery_parked
    where d.parked is not null and d.endpoint > endpoints.endpoint order by d.endpoint limit 1
  ) from endpoints where endpoint is not null
),
parking(endpoint, parked) as (
  select endpoint, (
    select d.parked from delivery d indexed by delivery_parked
    where d.parked is not null and d.endpoint = endpoints.endpoint order by d.parked limit 1
  ) from endpoints where endpoint is not null
  union all
  select endpoint, (
    select d.parked from delivery d indexed by delivery_parked
    where d.parked is not null and d.endpoint = parking.endpoint and d.parked > parking.parked
    order by d.parked limit 1
  ) from parking where parked is not null
)
select endpoint, parked, (
  select d.id from delivery d indexed by delivery_parked
  where d.parked is not null and d.endpoint = parking.endpoint and d.parked = parking.parked order by d.id limit 1
) from parking where parked is not null
