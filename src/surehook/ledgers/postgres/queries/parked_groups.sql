-- A loose scan: from each group one step to the next, past all its rows.
with recursive parking(endpoint, parked) as (
  (select endpoint, parked from delivery where parked is not null order by endpoint, parked limit 1)
  union all
  select d.endpoint, d.parked from parking p cross join lateral (
    select endpoint, parked from delivery
    where parked is not null and (endpoint, parked) > (p.endpoint, p.parked) order by endpoint, parked limit 1
  ) d
)
select endpoint, parked from parking order by endpoint, parked
