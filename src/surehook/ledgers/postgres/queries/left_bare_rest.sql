-- Events that were added since.
insert into event_left_{day}
select e.* from event_day_{day} e
where e.ctid >= $1 and not exists (select 1 from event_left_{day} l where l.id = e.id)
