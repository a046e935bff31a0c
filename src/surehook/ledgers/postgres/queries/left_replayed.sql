delete from replayed r
where r.original >= $1 and r.original < $2
  and not exists (select 1 from attempt a where a.delivery = r.original)
