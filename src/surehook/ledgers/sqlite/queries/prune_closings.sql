delete from breaker_closed where generation < ?
