select json_group_array(hex(id)) from (
  select id from delivery indexed by delivery_held
  where holder = (select number from node where id = ?)
  order by id limit ?
)
