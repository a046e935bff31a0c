-- Last history rows from an id up to another one, with the values that blocks have.
select json_group_array(json_array(hex(delivery), tenant, hex(endpoint), type, outcome, "end")) from (
  select delivery, tenant, endpoint, type, outcome, "end" from attempt
  where delivery >= ? and delivery < ? and "end" is not null order by delivery limit ?
)
