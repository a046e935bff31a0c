-- What one look at the start of a transaction tells; no row where the node is buried or never entered.
with fence as materialized (select number from node where id = $1 and buried_at is null for share)
select f.number, c.version, c.lag_ms from fence f, configuration c
