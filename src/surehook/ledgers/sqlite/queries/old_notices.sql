select json_group_array(hex(id)) from (select id from notice where id < ? and at < ? order by id limit ?)
