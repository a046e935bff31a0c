select max(rowid) from attempt
