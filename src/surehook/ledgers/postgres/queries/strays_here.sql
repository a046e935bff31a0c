-- As the last column of `claim`: $1 lane, $2 notes told from this transaction on.
select case
  when exists (select from stray where lane = $1::smallint and told >= $2) then -1
  else pg_snapshot_xmin(pg_current_snapshot())::text::bigint
end
