select b.node, b.counter from beat b join node n on n.id = b.node where n.buried_at is null
