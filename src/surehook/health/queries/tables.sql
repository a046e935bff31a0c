-- Unlogged: advice that may be lost. The lock keeps nodes that start at once from creating a table twice.
begin;
select pg_advisory_xact_lock(92184657318);
create unlogged table if not exists health_breaker (
  tenant text not null, key text not null, state text not null, reason text,
  opened_at bigint not null, probe_at bigint not null, generation bigint not null,
  author bytea, prober bytea, probe_until bigint not null default 0,
  primary key (tenant, key)
);
create index if not exists health_breaker_generation on health_breaker (generation);
create unlogged table if not exists health_count (
  tenant text not null, key text not null, number bigint not null,
  calls bigint not null, failures bigint not null, until bigint not null,
  primary key (tenant, key, number)
);
create unlogged table if not exists health_busy (
  endpoint bytea not null, node bytea not null, until bigint not null,
  primary key (endpoint, node)
);
commit;
