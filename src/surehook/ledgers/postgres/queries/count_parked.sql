-- One walk along the index of parked rows.
select endpoint, parked, lane, count(*) as rows from delivery where parked is not null group by endpoint, parked, lane
