select distinct endpoint from (select column1 as wanted from (values {rows:1}) limit ?)
cross join delivery on id = wanted
where +holder = ?
