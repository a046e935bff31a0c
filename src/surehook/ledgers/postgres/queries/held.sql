select id from (select id from delivery where holder = (select number from node where id = $1) offset 0) h order by id limit $2
