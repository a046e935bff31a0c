-- Which transactions are under way, and its own number (`under_way.py`).
pg_current_snapshot()::text || ':' || pg_current_xact_id()::text
