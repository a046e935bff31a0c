insert into node (id, host, boot_id, pid, started_at) values (?, ?, ?, ?, ?)
