delete from event where id = ?
