update delivery set due_at = min(due_at, ?) where id = ? and holder is null
