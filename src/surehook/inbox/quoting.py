"""Text that senders chose, made safe for a line of the log."""

from __future__ import annotations

import json
import re

# Anything else is quoted: senders choose ids, and lines end at line ends.
_BARE = re.compile(r"[\w.:/@+*-]+", re.ASCII)


def quoted(value: object) -> str:
    """Quote a value that a sender chose, so that it is safe in a log line."""
    text = str(value)
    return text if _BARE.fullmatch(text) else json.dumps(text)
