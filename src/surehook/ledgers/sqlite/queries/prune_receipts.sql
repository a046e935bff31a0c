delete from receipt where (event, endpoint) in (select column1, column2 from (values {rows:2}) limit ?)
