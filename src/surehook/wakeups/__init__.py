"""Adapters of `ports.wakeups`: between the engines of one process, and through PostgreSQL."""
