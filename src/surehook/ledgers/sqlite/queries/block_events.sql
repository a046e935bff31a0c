-- Events from an id up to another one, with the values that blocks have.
select json_group_array(json_array(hex(id), tenant, type)) from (
  select id, tenant, type from event where id >= ? and id < ? order by id limit ?
)
