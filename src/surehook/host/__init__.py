"""Adapters to the operating system: its clocks, its randomness, its processes."""
