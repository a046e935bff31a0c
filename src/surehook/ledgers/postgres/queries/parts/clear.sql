-- $1 lane, $2 notes of strays told from this transaction on: -1 where there are some, else from which on to ask again.
case when exists (select from stray where lane = $1::smallint and told >= $2::bigint) then -1
  else pg_snapshot_xmin(pg_current_snapshot())::text::bigint end
