update event set body = null where id = ?
