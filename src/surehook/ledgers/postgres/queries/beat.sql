-- Counters of all nodes that are not buried; no row where this one is. The node's own row is not locked. A burial under way
-- has taken the beat: this waits for it, and then finds none.
with me as materialized (select id from node where id = $1 and buried_at is null),
beaten as (update beat set counter = $2, at = $3 from me where beat.node = me.id returning beat.node)
select b.node, b.counter from beaten, node n join beat b on b.node = n.id where n.buried_at is null
