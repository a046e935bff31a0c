-- A loose index scan: one step from each group to the next, past all its rows.
with recursive parking(endpoint, parked, id) as (
  (select endpoint, parked, id from delivery where parked is not null order by endpoint, parked, id limit 1)
  union all
  select d.endpoint, d.parked, d.id from parking p cross join lateral (
    select endpoint, parked, id from delivery
    where parked is not null and (endpoint, parked) > (p.endpoint, p.parked) order by endpoint, parked, id limit 1
  ) d
)
select endpoint, parked, id from parking order by endpoint, parked
