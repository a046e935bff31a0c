-- The number of these tables that have a noting trigger (other schemas' do not count), and the columns that exist now.
select
  (
    select count(*) from pg_trigger
    where tgname = 'retiring' and tgenabled <> 'D' and tgrelid in (select to_regclass(t) from unnest($1::text[]) t)
  ) as noting,
  (
    select md5(string_agg(attname || ' ' || atttypid, ' ' order by attrelid, attnum)) from pg_attribute
    where attrelid in ('event'::regclass, 'attempt'::regclass) and attnum > 0 and not attisdropped
  ) as columns
