"""The parts of the loader that a batch passes through: fetch, collate, pin; and the processes that do it."""

import atexit

from rushlight._utils import ExceptionWrapper

IS_WINDOWS = False

MP_STATUS_CHECK_INTERVAL = 5.0  # seconds that idle workers get to end before they are told so by a signal
BUSY_GRACE = 1.0  # the same for workers that are loading a batch which nobody awaits any more

python_exit_status = False  # whether the interpreter is ending, which loaders of other packages ask


def _note_exit():
    global python_exit_status
    python_exit_status = True


atexit.register(_note_exit)

from rushlight.utils.data._utils import collate, fetch, pin_memory, signal_handling, worker  # noqa: E402


def __getattr__(name):
    if name == "HAS_NUMPY":
        from importlib.util import find_spec

        return find_spec("numpy") is not None
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["collate", "fetch", "pin_memory", "signal_handling", "worker"]
