-- Finished deliveries, none of them dead: taken out of the table and into the last line of their histories.
-- $3 now; the other columns are those of an entry.
{{record_finished}}, counted as (
  select count(*) as n from gone
)
select f.number, case when c.n < $2 then array(select id from gone) end from fence f, counted c
