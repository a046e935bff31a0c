delete from receipt where (event, endpoint) in (
  select event, endpoint from receipt where event < $1 and changed_at < $2 order by event, endpoint limit $3
) and changed_at < $2
