-- The counters of all nodes that are not evicted; no row if this one is. The node's own row is not locked. An eviction under way
-- has deleted the heartbeat: this waits for it, and then finds none.
with me as materialized (select id from node where id = $1 and buried_at is null),
beaten as (update beat set counter = $2, at = $3 from me where beat.node = me.id returning beat.node)
select b.node, b.counter from beaten, node n join beat b on b.node = n.id where n.buried_at is null
