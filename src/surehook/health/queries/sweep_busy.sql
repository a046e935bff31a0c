-- Parameter: what is no newer is forgotten. What another node holds now is left to the next sweep, so that nobody waits.
delete from health_busy
where ctid = any (array(select ctid from health_busy where until <= $1 for update skip locked))
