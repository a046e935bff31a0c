-- A bounded walk over all unfinished deliveries: the endpoints of those that nobody holds.
select distinct endpoint from (
  select endpoint, holder from delivery where id > ? order by id limit ?
) where holder is null
