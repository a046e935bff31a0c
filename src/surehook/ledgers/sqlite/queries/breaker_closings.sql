select c.tenant, c.key, 'closed', '', 0, 0, 0, 0, c.generation
from json_each(?) as v
join breaker_closed c on c.tenant = json_extract(v.value, '$[0]') and c.key = json_extract(v.value, '$[1]')
