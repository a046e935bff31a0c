-- What a claim says of notes and transactions, asked alone.
select {{has_notes}}, {{snapshot}} as snapshot
