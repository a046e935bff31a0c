delete from dismissed d
where d.delivery >= $1 and d.delivery < $2
  and not exists (select 1 from attempt a where a.delivery = d.delivery)
