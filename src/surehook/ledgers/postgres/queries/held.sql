select id from delivery where holder = (select number from node where id = $1) order by id limit $2
