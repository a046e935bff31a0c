"""Properties are tried without a stopwatch: the machine may be busy, and slowness is measured elsewhere."""

from hypothesis import settings

settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")
