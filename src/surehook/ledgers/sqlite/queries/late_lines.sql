-- Last lines that were inserted after a row number and lie below an id. (Without the sign SQLite would go by the id.)
select json_group_array(json_array(hex(delivery), tenant, hex(endpoint), type, outcome, "end"))
from attempt where rowid > ? and rowid <= ? and +delivery < ? and "end" is not null
