delete from node where buried_at < $1
