select endpoint, parked, count(*) from delivery where parked is not null group by endpoint, parked
