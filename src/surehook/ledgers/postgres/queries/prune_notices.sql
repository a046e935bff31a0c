delete from notice where id in (select id from notice where id < $1 and at < $2 order by id limit $3)
