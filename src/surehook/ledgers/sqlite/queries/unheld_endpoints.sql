-- A bounded walk over all unfinished deliveries: the endpoints of unheld ones.
select distinct endpoint from (
  select endpoint, holder from delivery where id > ? order by id limit ?
) where holder is null
