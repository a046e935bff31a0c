-- $1 lane, $2 notes of strays told from this transaction on.
exists (select from stray where lane = $1::smallint and told >= $2::bigint) as has_notes
