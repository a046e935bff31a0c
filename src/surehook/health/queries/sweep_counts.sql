-- Parameter: what is no newer is forgotten. What another node holds now is left to the next sweep, so that nobody waits.
delete from health_count
where ctid = any (array(select ctid from health_count where until <= $1 for update skip locked))
