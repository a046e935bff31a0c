select due_at from delivery indexed by delivery_ready
where holder is null and parked is null and lane = ? order by due_at limit 1
