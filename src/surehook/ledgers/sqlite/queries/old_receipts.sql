select json_group_array(json_array(hex(event), hex(endpoint)))
from (select event, endpoint from receipt where event < ? and changed_at < ? order by event, endpoint limit ?)
