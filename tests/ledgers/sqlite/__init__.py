"""What only the SQLite ledger does: the file, the lock, the settings, the plans, the shared commits."""
