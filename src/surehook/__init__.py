"""surehook: webhooks that surely arrive, and take effect once."""

__version__ = "0.1.0"
