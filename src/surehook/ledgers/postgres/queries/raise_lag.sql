update configuration set lag_ms = $1 where lag_ms < $1
