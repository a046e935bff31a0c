select json_group_array(hex(id)) from (
  select id from delivery indexed by delivery_parked
  where parked is not null and endpoint = ? and parked = ?
  order by id limit ?
)
