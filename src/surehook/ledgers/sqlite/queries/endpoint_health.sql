select tenant, failure_count, status, reason, url from endpoint where id = ?
