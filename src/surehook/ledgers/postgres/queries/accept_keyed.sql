-- Everything that is new, in one statement that fails where something is not. $1 node, $2 version, $3 now,
-- $4.. events by column, $19.. deliveries by column, $32.. keys by column.
-- Stale: as in `accept`.
with fence as materialized (
  select number from node where id = $1 and buried_at is null for share
), seen as materialized (
  select f.number, c.version, c.lag_ms,
    case when c.version <= $2 then false when c.version > $2 + 1000 then true else (
      select count(distinct n.version) < c.version - $2 or bool_or(case n.kind
        when 'tenant' then convert_from(n.key, 'UTF8') = any($5::text[])
        when 'event_type' then convert_from(n.key, 'UTF8') = any($6::text[])
        when 'endpoint' then coalesce((select e.tenant = any($5::text[]) from endpoint e where e.id = n.key), true)
        else false end)
      from configuration_change n where n.version > $2
    ) end as is_stale
  from fence f, configuration c
), events as (
  insert into event (
    id, tenant, type, schema_version, subject, sequence, workflow_version, correlation_id, causation_id, source,
    occurred_at, accepted_at, body, digest, fan_out
  )
  select
    v.id, v.tenant, v.type, coalesce(v.schema_version, '1'), v.subject, v.sequence, v.workflow_version,
    v.correlation_id, v.causation_id, v.source, v.occurred_at, coalesce(v.accepted_at, $3), v.body, v.digest,
    coalesce(v.fan_out, 1)
  from seen s, unnest(
    $4::bytea[], $5::text[], $6::text[], $7::text[], $8::text[], $9::bigint[], $10::text[], $11::text[], $12::text[],
    $13::text[], $14::bigint[], $15::bigint[], $16::bytea[], $17::bytea[], $18::int[]
  ) v (
    id, tenant, type, schema_version, subject, sequence, workflow_version, correlation_id, causation_id, source,
    occurred_at, accepted_at, body, digest, fan_out
  )
  where not s.is_stale
), deliveries as (
  insert into delivery (
    id, event, endpoint, tenant, type, lane, attempt, due_at, born_at, overdue_at, holder, parked, parked_at,
    handed
  )
  select
    v.id, v.event, v.endpoint, v.tenant, v.type, v.lane, coalesce(v.attempt, 1), coalesce(v.due_at, $3),
    coalesce(v.born_at, $3), v.overdue_at, case when v.is_held then s.number end, v.parked,
    case when v.parked is not null then $3 end, coalesce(v.handed, 0)
  from seen s, unnest(
    $19::bytea[], $20::bytea[], $21::bytea[], $22::text[], $23::text[], $24::smallint[], $25::int[], $26::bigint[],
    $27::bigint[], $28::bigint[], $29::bool[], $30::text[], $31::int[]
  ) v (id, event, endpoint, tenant, type, lane, attempt, due_at, born_at, overdue_at, is_held, parked, handed)
  where not s.is_stale
), keys as (
  insert into idempotency (tenant, key, event, digest, fan_out, expires_at)
  select v.tenant, v.key, v.event, v.digest, v.fan_out, $37
  from seen s, unnest($32::text[], $33::text[], $34::bytea[], $35::bytea[], $36::int[]) v (tenant, key, event, digest, fan_out)
  where not s.is_stale
)
select number, version, lag_ms, is_stale from seen
