"""One contract, one suite, every adapter (`adapters.py` says where they really differ)."""
