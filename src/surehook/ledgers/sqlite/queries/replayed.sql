insert or replace into replayed (original, replacement, at) select * from (values {rows:3}) limit ?
