-- Events inserted after a row number that lie below an id.
select json_group_array(json_array(hex(id), tenant, type)) from event where rowid > ? and rowid <= ? and +id < ?
