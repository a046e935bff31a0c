-- Time that a row stood for one of the standing reasons does not count as its age.
update delivery set
  holder = ?,
  stood_ms = stood_ms + iif(parked in ('paused', 'inactive', 'failure'), max(0, ? - parked_at), 0),
  parked = null, parked_at = null
where id in (select column1 from (values {rows:1}) limit ?)
