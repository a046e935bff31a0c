-- Parameters: tenant, key, generation. What is known must not be older than what was told.
update health_breaker set generation = greatest(generation, $3) where tenant = $1 and key = $2
