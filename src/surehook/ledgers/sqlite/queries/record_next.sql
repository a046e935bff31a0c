-- `column8` is 1 if a request was recorded; only then outcome and unknown are new.
update delivery set
  lane = v.column3, attempt = v.column4, due_at = v.column5, parked = v.column6,
  parked_at = iif(v.column6 is null, null, ?), spared = v.column7, holder = null,
  outcome = iif(v.column8, v.column9, outcome), unknown = iif(v.column8, v.column10, unknown),
  freed = iif(v.column8, 0, freed)
from (select * from (values {rows:10}) limit ?) v
where delivery.id = v.column1 and delivery.attempt = v.column2 and +delivery.holder = ?
