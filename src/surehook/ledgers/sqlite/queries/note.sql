-- Raising the version comes before.
insert into configuration_change (version, kind, key) select version, ?, ? from configuration
