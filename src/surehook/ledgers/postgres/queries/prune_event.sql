delete from {partition} e
where id = any($1::bytea[])
  and {{unneeded}}
