-- Everything new, in one statement that fails if something is not new. $1 node, $2 version, $3 now,
-- $4.. events by column, $20.. deliveries by column, $33.. keys by column.
{{accept_rows}}, keys as (
  insert into idempotency (tenant, key, event, digest, fan_out, expires_at)
  select v.tenant, v.key, v.event, v.digest, v.fan_out, $38
  from (
    select
      unnest($33::text[]) as tenant, unnest($34::text[]) as key, unnest($35::bytea[]) as event,
      unnest($36::bytea[]) as digest, unnest($37::int[]) as fan_out
  ) v
  where not (select is_stale from seen)
)
select number, version, lag_ms, is_stale from seen
