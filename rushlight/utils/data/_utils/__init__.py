"""The parts of the loader that a batch passes through: fetch, collate, pin; and the processes that do it."""

from rushlight._utils import ExceptionWrapper

IS_WINDOWS = False

MP_STATUS_CHECK_INTERVAL = 5.0  # seconds that idle workers get to end before they are told so by a signal
BUSY_GRACE = 1.0  # the same for workers that are loading a batch which nobody awaits any more

from rushlight.utils.data._utils import collate, fetch, pin_memory, signal_handling, worker  # noqa: E402


def __getattr__(name):
    if name == "HAS_NUMPY":
        from importlib.util import find_spec

        return find_spec("numpy") is not None
    if name == "python_exit_status":  # loaders of other packages then leave their workers alone
        import sys

        return sys.is_finalizing()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["collate", "fetch", "pin_memory", "signal_handling", "worker"]
