update configuration set lag_ms = ?
