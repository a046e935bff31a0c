-- True if this very dismissal exists: its commit's answer was lost.
select exists (select 1 from dismissed where delivery = $1 and note = $2 and at = $3)
