insert into event (
  id, tenant, type, schema_version, subject, sequence, workflow_version, correlation_id, causation_id, source,
  occurred_at, accepted_at, body, digest, fan_out, idempotency_key
)
select
  v.id, v.tenant, v.type, coalesce(v.schema_version, '1'), v.subject, v.sequence, v.workflow_version,
  v.correlation_id, v.causation_id, v.source, v.occurred_at, coalesce(v.accepted_at, $1), v.body, v.digest,
  coalesce(v.fan_out, 1), v.idempotency_key
from unnest(
  $2::bytea[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::text[], $9::text[], $10::text[],
  $11::text[], $12::bigint[], $13::bigint[], $14::bytea[], $15::bytea[], $16::int[], $17::text[]
) v (
  id, tenant, type, schema_version, subject, sequence, workflow_version, correlation_id, causation_id, source,
  occurred_at, accepted_at, body, digest, fan_out, idempotency_key
)
on conflict do nothing
returning id
