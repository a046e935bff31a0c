-- The version must have been raised before.
insert into configuration_change (version, kind, key) select version, ?, ? from configuration
