update receipt set finalize_by = null, changed_at = ?
where (event, endpoint) in (select column1, column2 from (values {rows:2}) limit ?)
