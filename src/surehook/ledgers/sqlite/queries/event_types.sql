select t.name, t.description, t.schema, t.schema_version, t.policy, t.created_at, t.schemas from (select column1 as id from (values {rows:1}) limit ?) v
cross join event_type t on t.name = v.id
