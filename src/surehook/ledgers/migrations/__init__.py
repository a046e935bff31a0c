"""The schema's history, by Alembic. `head.py` names its end, so that a file that is there imports nothing."""
