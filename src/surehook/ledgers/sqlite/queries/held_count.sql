select count(*) from delivery indexed by delivery_held
where holder = (select number from node where id = ?)
