insert or ignore into dead_letter (delivery) select * from (values {rows:1}) limit ?
