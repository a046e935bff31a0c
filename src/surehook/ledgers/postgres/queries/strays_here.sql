-- What a claim says as `clear`, asked alone.
select {{clear}}
