insert or ignore into dead_letter (delivery, request_headers) select * from (values {rows:2}) limit ?
