select count(*)::bigint as rows from dead_letter
