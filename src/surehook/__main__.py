"""`python -m surehook`."""

import sys

from surehook.cli.main import run

sys.exit(run())
