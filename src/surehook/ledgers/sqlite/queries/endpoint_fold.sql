update endpoint set failure_count = ?, status = ?, reason = ?, updated_at = coalesce(?, updated_at) where id = ?
