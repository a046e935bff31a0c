delete from dead_letter where delivery in (select column1 from (values {rows:1}) limit ?)
