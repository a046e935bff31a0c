-- Whether more deliveries of a span of ids than this still need their events.
select count(*) > $3 from (
  select 1 from delivery where id >= $1 and id < $2
  union all
  select 1 from dead_letter where delivery >= $1 and delivery < $2
  limit $3 + 1
) needing
