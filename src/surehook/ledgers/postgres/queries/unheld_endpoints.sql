-- A bounded walk over all unfinished deliveries: the endpoints of unheld ones, and the end of the walk.
with walked as materialized (
  select id, endpoint, holder from delivery where id > $1 order by id limit $2
)
select
  array(select distinct endpoint from walked where holder is null) as endpoints,
  (select id from walked order by id desc limit 1) as last
