-- Events from an id up to another one, with what blocks tell of each.
select json_group_array(json_array(hex(id), tenant, type)) from (
  select id, tenant, type from event where id >= ? and id < ? order by id limit ?
)
