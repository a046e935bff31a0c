select count(*) from dead_letter
