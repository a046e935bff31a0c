"""The receiver: verify, persist, dedupe, answer, process."""
