-- Rows of the lane after a due time and id, due by an instant: how many were looked at, the last of them, and those of
-- nobody who is named (endpoints as hexadecimal text).
with looked as materialized (
  select r.due_at, r.id, d.endpoint, d.tenant
  from (
    select due_at, id from delivery indexed by delivery_ready
    where holder is null and parked is null and lane = ? and (due_at, id) > (?, ?) and due_at <= ?
    order by due_at, id limit ?
  ) r
  cross join delivery d on d.id = r.id
)
select json_array(
  (select count(*) from looked),
  json((select json_array(due_at, hex(id)) from looked order by due_at desc, id desc limit 1)),
  json((select json_group_array(json_array(due_at, hex(id))) from (
    select due_at, id from looked
    where hex(endpoint) not in (select value from json_each(?)) and tenant not in (select value from json_each(?))
    order by due_at, id limit ?
  )))
)
