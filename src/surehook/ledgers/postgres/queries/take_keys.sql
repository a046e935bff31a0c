-- The keys that are ours now: new ones, and expired ones taken over. The others are locked until the transaction ends.
insert into idempotency as i (tenant, key, event, digest, fan_out, expires_at)
select v.tenant, v.key, v.event, v.digest, v.fan_out, $6
from unnest($1::text[], $2::text[], $3::bytea[], $4::bytea[], $5::int[]) v (tenant, key, event, digest, fan_out)
on conflict (tenant, key) do update set
  event = excluded.event, digest = excluded.digest, fan_out = excluded.fan_out, expires_at = excluded.expires_at
where i.expires_at <= $7
returning tenant, key
