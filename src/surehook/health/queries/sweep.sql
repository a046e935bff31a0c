-- Parameters: now, and the oldest generation that is kept. What another node holds now is left to the next sweep, so that nobody waits.
with old_counts as (
  delete from health_count
  where ctid = any (array(select ctid from health_count where until <= $1 for update skip locked))
), old_breakers as (
  delete from health_breaker
  where ctid = any (array(select ctid from health_breaker where generation <= $2 for update skip locked))
)
delete from health_busy
where ctid = any (array(select ctid from health_busy where until <= $1 for update skip locked))
