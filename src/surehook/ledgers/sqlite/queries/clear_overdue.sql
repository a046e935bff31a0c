update delivery set overdue_at = null where id in (select column1 from (values {rows:1}) limit ?)
