-- Last history rows inserted after a row number that lie below an id. `+` keeps SQLite from using the index of the id.
select json_group_array(json_array(hex(delivery), tenant, hex(endpoint), type, outcome, "end"))
from attempt where rowid > ? and rowid <= ? and +delivery < ? and "end" is not null
