-- Time for which a row was parked for one of the standing reasons does not count towards its age.
update delivery set
  holder = ?,
  stood_ms = stood_ms + iif(parked in ('paused', 'inactive', 'failure'), max(0, ? - parked_at), 0),
  parked = null, parked_at = null
where id in (select column1 from (values {rows:1}) limit ?)
