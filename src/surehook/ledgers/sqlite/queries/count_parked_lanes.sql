select lane, count(*) from delivery indexed by delivery_parked where parked is not null group by lane
