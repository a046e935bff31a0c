-- Endpoints were changed: raise the version, and note them.
with raised as (update configuration set version = version + 1 returning version)
insert into configuration_change (version, kind, key)
select r.version, 'endpoint', e.id from raised r, (select distinct id from unnest($1::bytea[]) v(id)) e
