select lane, count(*) from delivery indexed by delivery_held where holder is not null group by lane
