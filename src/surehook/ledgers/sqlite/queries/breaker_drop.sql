delete from health where tenant = ? and key = ? and generation <= ?
