select tenant, failure_count, status, reason from endpoint where id = ?
