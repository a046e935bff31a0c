select json_group_array(hex(id)) from (
  select id from delivery indexed by delivery_overdue
  where overdue_at is not null and overdue_at <= ? order by overdue_at, id limit ?
)
