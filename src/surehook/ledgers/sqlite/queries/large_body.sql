-- The bytes themselves: as hexadecimal text a quarter of a megabyte takes the writer more than a millisecond.
select body from event where id = ?
