-- $1 lane, $2 notes of strays of this transaction or later.
exists (select from stray where lane = $1::smallint and told >= $2::bigint) as has_notes
