update delivery set
  freed = freed + 1, due_at = iif(freed >= 4, max(due_at, ? + 10000), due_at), holder = null
where id in (select column1 from (values {rows:1}) limit ?) and +holder = ?
