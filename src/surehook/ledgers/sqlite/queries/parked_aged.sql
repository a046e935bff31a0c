-- Some rows of one group after a position: their number, the last one, and those past their age.
with walked as materialized (
  select id, born_at + stood_ms < ? as is_aged from delivery indexed by delivery_parked
  where parked is not null and endpoint = ? and parked = ? and id > ? and id < ?
  order by id limit ?
)
select
  (select count(*) from walked), (select max(id) from walked),
  (select json_group_array(hex(id)) from (select id from walked where is_aged order by id limit ?))
