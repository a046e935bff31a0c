-- Those of these that were ended in this state at this instant, without a call.
select a.delivery from unnest($1::bytea[]) v(id) cross join lateral (
  select * from attempt where delivery = v.id and seq & 63 = 62 and finished_at = $2 and "end" = $3 offset 0
) a
