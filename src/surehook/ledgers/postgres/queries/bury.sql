-- Waits for every transaction that holds a share of one of these rows.
update node set buried_at = $2 where id = any($1::bytea[]) and buried_at is null returning number
