select count(*) from delivery where holder = (select number from node where id = $1)
