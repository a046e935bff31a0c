insert into event (
  id, tenant, type, schema_version, subject, sequence, workflow_version, correlation_id, causation_id, source,
  occurred_at, accepted_at, digest, fan_out, body, idempotency_key
)
select * from (values {rows:16}) limit ?
