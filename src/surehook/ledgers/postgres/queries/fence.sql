-- The check at the start of a transaction; no row if the node is evicted or never entered.
with fence as materialized (select number from node where id = $1 and buried_at is null for share)
select f.number, c.version, c.lag_ms from fence f, configuration c
