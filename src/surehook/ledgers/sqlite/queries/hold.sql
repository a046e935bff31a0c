update delivery set holder = ? where id in (select column1 from (values {rows:1}) limit ?)
