update delivery set due_at = least(due_at, $2) where id = $1 and holder is null returning 1
