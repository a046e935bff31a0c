select count(*) from delivery indexed by delivery_ready
where holder is null and parked is null and lane = ? and due_at > ?
