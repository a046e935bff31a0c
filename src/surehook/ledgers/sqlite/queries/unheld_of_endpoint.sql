-- A bounded walk over all unfinished deliveries; no index has the endpoint of an unparked one.
select json_group_array(hex(id)) from (
  select id, endpoint, holder from delivery where id > ? order by id limit ?
) where endpoint = ? and holder is null
