"""A small application of Django whose documents are moved by webhooks."""
