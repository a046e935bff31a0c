"""The ends of the ids: nothing sorts before the one, and no id from the other on."""

LOWEST, HIGHEST = b"", b"\xff" * 17
