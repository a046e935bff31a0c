-- The raw bytes: as hexadecimal text, 256 KB take the writer more than a millisecond.
select body from event where id = ?
