select count(*) from (select 1 from event where id >= ? and id < ? limit ?)
