-- Events after a position, and the fate of each: young, kept (an unfinished delivery or a dead letter needs it), old, or open,
-- which is of no concern (bodies are asked for, and this one is gone). A delivery's id begins like that of its event.
select json_group_array(json_array(id, id, fate)) from (
  select
    hex(e.id) as id,
    case when e.accepted_at >= ? then 'young'
         when ? = 1 and e.body is null then 'open'
         when exists (
           select 1 from delivery d
           where d.id between cast(substr(e.id, 1, 10) || x'000000000000' as blob)
             and cast(substr(e.id, 1, 10) || x'ffffffffffff' as blob) and d.event = e.id
         ) or exists (
           select 1 from dead_letter l cross join attempt a on a.delivery = l.delivery
           where l.delivery between cast(substr(e.id, 1, 10) || x'000000000000' as blob)
             and cast(substr(e.id, 1, 10) || x'ffffffffffff' as blob) and a.event = e.id
         ) then 'kept'
         else 'old' end as fate
  from event e where e.id > ? and e.id < ? order by e.id limit ?
)
