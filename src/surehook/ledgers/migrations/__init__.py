"""The schema's history, by Alembic. `head.py` names the newest revision, so that a current schema imports nothing."""
