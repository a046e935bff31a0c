delete from delivery where id in (select column1 from (values {rows:1}) limit ?)
