-- Rows of the lane after a due time and id, due by an instant: the last one of so many that are looked at (null where there
-- are fewer), and among those the first ones of nobody who is named (endpoints as hexadecimal text). The index alone is
-- read, row by row and once: gathered first, or with a look at each row, the same took six times as long.
select json_array(
  json((
    select json_array(due_at, hex(id)) from delivery indexed by delivery_ready
    where holder is null and parked is null and lane = ? and (due_at, id) > (?, ?) and due_at <= ?
    order by due_at, id limit 1 offset ?
  )),
  json((select json_group_array(json_array(due_at, hex(id))) from (
    select due_at, id from (
      select due_at, id, endpoint, tenant from delivery indexed by delivery_ready
      where holder is null and parked is null and lane = ? and (due_at, id) > (?, ?) and due_at <= ?
      order by due_at, id limit ?
    )
    where tenant not in (select value from json_each(?)) and hex(endpoint) not in (select value from json_each(?))
    limit ?
  )))
)
