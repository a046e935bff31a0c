-- A bounded walk over all unfinished deliveries (no index knows the endpoint of an unparked one): the endpoint's rows
-- that nobody holds, and last the row where the walk stopped, with whether it may go on from there.
with walked as materialized (
  select id, endpoint, holder from delivery where id > $1 order by id limit $2
)
(select id, true, true from walked where endpoint = $3 and holder is null order by id)
union all
(select id, false, (select count(*) = $2 from walked) from walked order by id desc limit 1)
