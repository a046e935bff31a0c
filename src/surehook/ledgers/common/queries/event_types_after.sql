select t.name, t.description, t.schema, t.schema_version, t.policy, t.created_at, t.schemas from event_type t where t.name > ? order by t.name limit ?
