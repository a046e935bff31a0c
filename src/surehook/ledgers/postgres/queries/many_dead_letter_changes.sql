select count(*) > $1 from (select 1 from dead_letter_count limit $1 + 1) changes
