-- Counters of all nodes that are not buried; no row where this one is. The node's own row is not locked.
with me as materialized (select id from node where id = $1 and buried_at is null),
beaten as (update beat set counter = $2, at = $3 from me where beat.node = me.id)
select b.node, b.counter from me, node n join beat b on b.node = n.id where n.buried_at is null
