-- $1 lane, $2 notes of strays of this transaction or later, $3 node, $4 from, $5 due by, $6 limit, $7 bytes.
-- Rows that somebody else is taking are skipped. A body comes with the first row of its event only. `walked` counts the index
-- entries that were read, those of taken rows too (0 if the server keeps no statistics).
with fence as materialized (
  select number, coalesce(pg_stat_get_xact_tuples_returned('delivery_ready'::regclass), 0) as walked
  from node where id = $3 and buried_at is null for share
), picked as materialized (
  select id, event, due_at from delivery
  where holder is null and parked is null and lane = $1::smallint and due_at >= $4 and due_at <= $5
    -- Makes the fence come first, so that its count is the one before the walk.
    and exists (select from fence)
  order by due_at, id limit $6 for update skip locked
), sized as materialized (
  -- `before` sums the bytes of earlier rows, each event's once.
  select p.*, e.body, coalesce(sum(case when p.is_first then octet_length(e.body) else 0 end) over (
    order by p.due_at, p.id rows between unbounded preceding and 1 preceding), 0) as before
  from (select *, row_number() over (partition by event order by due_at, id) = 1 as is_first from picked) p
  cross join lateral (select body from event where id = p.event offset 0) e
), held as (
  update delivery d set holder = f.number, handed = 0 from fence f, sized s
  where d.id >= s.id and d.id <= s.id and s.before < $7
  returning d.*, case when s.is_first then s.body end as body
)
select
  {{leased}},
  coalesce(pg_stat_get_xact_tuples_returned('delivery_ready'::regclass), 0) - f.walked as walked,
  {{has_notes}}, (select {{snapshot}}) as snapshot
from fence f left join held h on true
order by h.due_at, h.id
