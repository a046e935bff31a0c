-- Events from a place on, and which of them are old (with a body left, where bodies are asked for).
select json_group_array(json_array(hex(id), is_old)) from (
  select id, accepted_at < ? and (? = 0 or body is not null) as is_old
  from event where id > ? and id < ? order by id limit ?
)
