update {partition} e set body = null
where id = any($1::bytea[])
  and {{unneeded}}
