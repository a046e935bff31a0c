-- A bounded walk over all unfinished deliveries, since no index has the endpoint of an unparked one. Returns the endpoint's
-- unheld rows, and last the row at which the walk stopped, and if it may go on from there.
with walked as materialized (
  select id, endpoint, holder from delivery where id > $1 order by id limit $2
)
(select id, true, true from walked where endpoint = $3 and holder is null order by id)
union all
(select id, false, (select count(*) = $2 from walked) from walked order by id desc limit 1)
