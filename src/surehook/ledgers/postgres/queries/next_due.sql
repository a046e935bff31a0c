select due_at from delivery
where holder is null and parked is null and lane = $1::smallint and due_at >= $2 order by due_at limit 1
