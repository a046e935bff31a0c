select sum(change) from dead_letter_count
