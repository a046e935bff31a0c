-- Prunes without a walk, at most $6 rows: keys of some pages ($1 to $2) that had expired by $3, notices and receipts below the id
-- $4 and before $5. Nodes evicted before $7, heartbeats of nodes that are gone, and closings of breakers before $8 with the
-- openings that they undid are few. Returns the number of rows, and the number of pages of keys.
with keys as (
  delete from idempotency where ctid in (
    select ctid from idempotency where ctid >= $1::tid and ctid < $2::tid and expires_at <= $3 limit $6::bigint
  ) and expires_at <= $3
  returning 1
), notices as (
  delete from notice where id in (
    select id from notice where id < $4 and at < $5 order by id limit $6::bigint - (select count(*) from keys)
  )
  returning 1
), receipts as (
  delete from receipt where (event, endpoint) in (
    select event, endpoint from receipt where event < $4 and changed_at < $5 order by event, endpoint
    limit $6::bigint - (select count(*) from keys) - (select count(*) from notices)
  ) and changed_at < $5
  returning 1
), nodes as (
  delete from node where buried_at < $7
), beats as (
  delete from beat where node not in (select id from node where buried_at is null)
), undone as (
  delete from health h using breaker_closed c
  where c.generation < $8 and h.tenant = c.tenant and h.key = c.key and h.generation <= c.generation
), closings as (
  delete from breaker_closed where generation < $8
)
select
  (select count(*) from keys) + (select count(*) from notices) + (select count(*) from receipts) as removed,
  pg_relation_size('idempotency') / current_setting('block_size')::bigint as pages
