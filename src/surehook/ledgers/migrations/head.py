"""The newest revision. A test compares it with the newest file under `versions/`."""

HEAD = "0016"
