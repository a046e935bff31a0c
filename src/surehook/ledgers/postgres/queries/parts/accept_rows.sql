-- The rows that every accept writes: events and deliveries, and none if the node's configuration was too old for them.
-- Stale: a note after $2 names a tenant ($5), a type ($6), an endpoint of a tenant of these events, or an endpoint that is gone;
-- or a version has no note, or there are more than 1000 (`MEETINGS_MOST`).
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
    occurred_at, accepted_at, body, digest, fan_out, idempotency_key
  )
  select
    v.id, v.tenant, v.type, coalesce(v.schema_version, '1'), v.subject, v.sequence, v.workflow_version,
    v.correlation_id, v.causation_id, v.source, v.occurred_at, coalesce(v.accepted_at, $3), v.body, v.digest,
    coalesce(v.fan_out, 1), v.idempotency_key
  from (
    select
      unnest($4::bytea[]) as id, unnest($5::text[]) as tenant, unnest($6::text[]) as type,
      unnest($7::text[]) as schema_version, unnest($8::text[]) as subject, unnest($9::bigint[]) as sequence,
      unnest($10::text[]) as workflow_version, unnest($11::text[]) as correlation_id,
      unnest($12::text[]) as causation_id, unnest($13::text[]) as source,
      unnest($14::bigint[]) as occurred_at, unnest($15::bigint[]) as accepted_at,
      unnest($16::bytea[]) as body, unnest($17::bytea[]) as digest, unnest($18::int[]) as fan_out,
      unnest($19::text[]) as idempotency_key
  ) v
  where not (select is_stale from seen)
), deliveries as (
  insert into delivery (
    id, event, endpoint, tenant, type, lane, attempt, due_at, born_at, overdue_at, holder, parked, parked_at,
    handed
  )
  select
    v.id, v.event, v.endpoint, v.tenant, v.type, v.lane, coalesce(v.attempt, 1), coalesce(v.due_at, $3),
    coalesce(v.born_at, $3), v.overdue_at, case when v.is_held then (select number from seen) end, v.parked,
    case when v.parked is not null then $3 end, coalesce(v.handed, 0)
  from (
    select
      unnest($20::bytea[]) as id, unnest($21::bytea[]) as event, unnest($22::bytea[]) as endpoint,
      unnest($23::text[]) as tenant, unnest($24::text[]) as type, unnest($25::smallint[]) as lane,
      unnest($26::int[]) as attempt, unnest($27::bigint[]) as due_at, unnest($28::bigint[]) as born_at,
      unnest($29::bigint[]) as overdue_at, unnest($30::bool[]) as is_held, unnest($31::text[]) as parked,
      unnest($32::int[]) as handed
  ) v
  where not (select is_stale from seen)
)
