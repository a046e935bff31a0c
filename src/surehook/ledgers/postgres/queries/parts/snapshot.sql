-- The transactions under way, and the number of this one (`under_way.py`).
pg_current_snapshot()::text || ':' || pg_current_xact_id()::text
