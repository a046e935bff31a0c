-- Some rows of one group from a place on, and which of them are past their age.
select json_group_array(json_array(hex(id), born_at + stood_ms < ?)) from (
  select id, born_at, stood_ms from delivery indexed by delivery_parked
  where parked is not null and endpoint = ? and parked = ? and id > ? and id < ?
  order by id limit ?
)
