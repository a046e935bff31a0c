-- History rows after a position, and the fate of each: last rows are old, young, or kept (dead letters).
select json_group_array(json_array(row, hex(delivery), fate)) from (
  select
    rowid as row, delivery,
    case when end is null then 'open'
         when finished_at >= ? then 'young'
         when end = 'dead' and exists (select 1 from dead_letter l where l.delivery = a.delivery) then 'kept'
         else 'old' end as fate
  from attempt a where rowid > ? and rowid <= ? order by rowid limit ?
)
