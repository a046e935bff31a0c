-- The schedule starts over; attempt numbers go on.
update delivery set
  holder = ?, born_at = ?, due_at = ?, stood_ms = 0, spared = attempt - 1, parked = null, parked_at = null
where id in (select column1 from (values {rows:1}) limit ?)
