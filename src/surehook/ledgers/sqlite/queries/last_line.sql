select coalesce(max(rowid), 0) from attempt
