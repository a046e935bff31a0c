select id, host, boot_id, pid, started_at from node where buried_at is null order by id
