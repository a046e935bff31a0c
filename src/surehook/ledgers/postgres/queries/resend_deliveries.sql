insert into delivery (
  id, event, endpoint, tenant, type, lane, attempt, due_at, born_at, overdue_at, parked, parked_at, replay_of
)
select * from unnest(
  $1::bytea[], $2::bytea[], $3::bytea[], $4::text[], $5::text[], $6::smallint[], $7::int[], $8::bigint[],
  $9::bigint[], $10::bigint[], $11::text[], $12::bigint[], $13::bytea[]
)
