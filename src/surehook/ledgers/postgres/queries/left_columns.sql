-- The columns of an event `e`, with its body only if somebody (`needed`) still needs it.
select string_agg(
  case when attname = 'body' then 'case when needed.id is null and e.accepted_at < $3 then null else e.body end'
    else 'e.' || quote_ident(attname) end,
  ', ' order by attnum
)
from pg_attribute where attrelid = 'event'::regclass and attnum > 0 and not attisdropped
