-- What a claim reports of notes and transactions, without a claim.
select {{has_notes}}, {{snapshot}} as snapshot
