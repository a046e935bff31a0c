select t.name, t.description, t.schema, t.schema_version, t.policy, t.created_at, t.schemas from unnest($1::text[]) v(id) cross join lateral (select * from event_type where name = v.id offset 0) t
