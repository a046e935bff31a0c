select name, description, schema, schema_version, policy, created_at from event_type order by name
