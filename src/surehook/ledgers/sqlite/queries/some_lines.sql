select count(*) from (select 1 from attempt where delivery >= ? and delivery < ? limit ?)
