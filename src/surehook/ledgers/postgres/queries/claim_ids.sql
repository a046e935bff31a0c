-- $1 node, $2 ids, $3 due by, $4 bytes. In the order of the ids; a body comes with the first row of its event only. `cut` is
-- the position of the first id that was left because of its bytes.
with fence as materialized (select number from node where id = $1 and buried_at is null for share),
picked as materialized (
  select d.id, d.event, v.place
  from unnest($2::bytea[]) with ordinality v(id, place) join delivery d on d.id >= v.id and d.id <= v.id
  where num_nonnulls(d.holder, d.parked) = 0 and d.due_at <= $3
  for update of d skip locked
), sized as materialized (
  -- `before` sums the bytes of earlier rows, each event's once.
  select p.*, e.body, coalesce(sum(case when p.is_first then octet_length(e.body) else 0 end) over (
    order by p.place rows between unbounded preceding and 1 preceding), 0) as before
  from (select *, row_number() over (partition by event order by place) = 1 as is_first from picked) p
  cross join lateral (select body from event where id = p.event offset 0) e
), held as (
  update delivery d set holder = f.number, handed = 0 from fence f, sized s
  where d.id >= s.id and d.id <= s.id and s.before < $4
  returning d.*, s.place, case when s.is_first then s.body end as body
)
select
  {{leased}},
  (select min(place) from sized where before >= $4) as cut
from fence f left join held h on true
order by h.place
