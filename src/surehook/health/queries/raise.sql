-- tenant, key, generation: what is known is not older than what was told.
update health_breaker set generation = greatest(generation, $3) where tenant = $1 and key = $2
