"""What only the PostgreSQL ledger has: days, plans, nodes beside each other, servers that go away."""
