"""Programs that tests start and kill."""
