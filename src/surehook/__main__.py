"""`surehook`, and `python -m surehook`."""

import sys


def main() -> int:
    """Run one command line. Loading what it needs takes half a second, in which Ctrl-C is no traceback either."""
    try:
        from surehook.cli.main import run

        return run()
    except KeyboardInterrupt:
        return 130
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "typer":
            raise
        sys.stderr.write("error: the command line is not installed\nhint:  pip install 'surehook[server]'\n")
        return 1


if __name__ == "__main__":
    sys.exit(main())
