insert or ignore into notice (id, at, kind, tenant, endpoint, delivery, detail) values (?, ?, ?, ?, ?, ?, ?)
