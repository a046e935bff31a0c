select json_group_array(hex(id)) from (
  select id from delivery indexed by delivery_ready
  where holder is null and parked is null and lane = ? and due_at <= ?
  order by due_at, id limit ?
)
