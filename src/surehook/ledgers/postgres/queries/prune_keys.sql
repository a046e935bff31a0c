delete from idempotency where ctid in (
  select ctid from idempotency where ctid >= $1::tid and ctid < $2::tid and expires_at <= $3 limit $4
) and expires_at <= $3
