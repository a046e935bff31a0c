-- Finished deliveries, none of them dead: moved from the table to the last rows of their histories.
-- $3 now; the other columns are those of a history row.
{{record_finished}}, counted as (
  select count(*) as n from gone
)
select f.number, case when c.n < $2 then array(select id from gone) end from fence f, counted c
