-- Everything that is new, in one statement that fails where something is not. $1 node, $2 version, $3 now,
-- $4.. events by column, $20.. deliveries by column. Columns that are the same for all are not sent.
{{accept_rows}}
select number, version, lag_ms, is_stale from seen
