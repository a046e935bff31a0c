-- Ready rows of the lane after a due time and id, due by an instant. The first value is the last row read (null if there are
-- fewer than the limit), the second the first rows of endpoints and tenants that are not skipped (endpoints as hexadecimal text).
-- Only the index is read, row by row and once: materialized first, or with a read of each row, it took six times as long.
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
