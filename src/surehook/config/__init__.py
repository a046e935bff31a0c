"""Settings of a process: declared once (`settings.py`), gathered from four places (`sources.py`), checked by kind."""

from surehook.config.setting import Setting
from surehook.config.settings import BY_NAME, SETTINGS, Settings
from surehook.config.sources import FILE_VARIABLE, UNAVAILABLE

__all__ = ["BY_NAME", "FILE_VARIABLE", "SETTINGS", "UNAVAILABLE", "Setting", "Settings"]
