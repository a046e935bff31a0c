-- Some rows of one group from a place on: how many, the last one, and which are past their age.
with walked as materialized (
  select id, born_at + stood_ms < $6 as is_aged from delivery
  where parked is not null and (endpoint, parked, id) > ($1, $2, $3) and (endpoint, parked, id) < ($1, $2, $4)
  order by endpoint, parked, id limit $5
)
select
  (select count(*) from walked), (select id from walked order by id desc limit 1),
  array(select id from walked where is_aged order by id limit $7)
