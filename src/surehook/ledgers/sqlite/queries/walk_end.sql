select max(id) from (select id from delivery where id > ? order by id limit ?)
