delete from beat where node not in (select id from node where buried_at is null)
