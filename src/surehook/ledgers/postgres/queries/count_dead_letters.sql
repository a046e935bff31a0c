select sum(change)::bigint as rows from dead_letter_count
