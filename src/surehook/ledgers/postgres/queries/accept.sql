-- Everything new, in one statement that fails if something is not new. $1 node, $2 version, $3 now,
-- $4.. events by column, $20.. deliveries by column. Columns in which all rows are alike are not sent.
{{accept_rows}}
select number, version, lag_ms, is_stale from seen
