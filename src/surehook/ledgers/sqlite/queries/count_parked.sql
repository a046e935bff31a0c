select endpoint, parked, count(*) from delivery indexed by delivery_parked
where parked is not null group by endpoint, parked
