delete from attempt where delivery = ?
