"""surehook: webhooks that surely arrive, and take effect once."""

__version__ = "0.1.0"

TYPE_CHECKING = False  # as type checkers know it; `typing` itself would be most of this import

if TYPE_CHECKING:
    from surehook.verify import VerifyError as VerifyError
    from surehook.verify import verify as verify
else:

    def __getattr__(name):
        """`surehook.verify` and `surehook.VerifyError`, loaded when first used: importing the package costs nothing."""
        if name not in ("verify", "VerifyError"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        module = import_module("surehook.verify")
        return module if name == "verify" else module.VerifyError
