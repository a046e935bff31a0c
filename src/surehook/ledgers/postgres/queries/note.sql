-- The configuration was changed: raise the version, note the row, and delete notes that are too old.
with raised as (
  update configuration set version = version + 1 returning version
), noted as (
  insert into configuration_change (version, kind, key) select r.version, $1::text, $2::bytea from raised r
)
delete from configuration_change n using raised r where n.version <= r.version - $3::bigint
