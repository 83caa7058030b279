"""A failing process leaves its traceback in a file that its launcher reads and shows."""

import functools
import json
import os
import signal
import socket
import sys
import time
import traceback
from dataclasses import dataclass

__all__ = ["ChildFailedError", "ProcessFailure", "record"]

_FILE = "TORCHELASTIC_ERROR_FILE"


def record_exception(error: BaseException) -> None:
    """Write the exception to the file that the launcher named, if there is a launcher."""
    path = os.environ.get(_FILE)
    if not path:
        return
    message = {
        "message": f"{type(error).__name__}: {error}",
        "extraInfo": {
            "py_callstack": "".join(traceback.format_exception(error)),
            "timestamp": str(int(time.time())),
        },
    }
    with open(path, "w") as file:
        json.dump({"message": message}, file)


def record_uncaught_exceptions() -> None:
    """From now on what ends this process is recorded, in a process of a launcher."""
    if not os.environ.get(_FILE) or getattr(sys.excepthook, "_records", False):
        return
    show = sys.excepthook

    def hook(kind, error, trace):
        record_exception(error)
        show(kind, error, trace)

    hook._records = True  # type: ignore[attr-defined]
    sys.excepthook = hook


def record(fn, error_handler=None):
    """Decorator for a program's main function: what it raises is recorded for the launcher, and raised on."""

    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        try:
            return fn(*args, **kwargs)
        except SystemExit as exit:
            if exit.code not in (0, None):
                record_exception(exit)
            raise
        except ChildFailedError as failed:
            _pass_on(failed)
            raise
        except Exception as error:
            record_exception(error)
            raise

    return wrapper


def _pass_on(failed):
    path, first = os.environ.get(_FILE), failed.get_first_failure()[1]
    if path and first.recorded:
        with open(path, "w") as file:
            json.dump({"message": first.recorded}, file)


@dataclass
class ProcessFailure:
    """How one process ended: `exitcode` is negative for a signal. What it recorded is read at once."""

    local_rank: int
    pid: int
    exitcode: int
    error_file: str
    rank: int = -1
    timestamp: float = 0.0

    def __post_init__(self):
        try:
            with open(self.error_file) as file:
                self.recorded = json.load(file)["message"]
        except (OSError, ValueError, KeyError, TypeError):
            self.recorded = None

    @property
    def message(self):
        """What the process recorded, or how it ended."""
        if self.recorded:
            return self.recorded["message"]
        if self.exitcode < 0:
            return f"Signal {-self.exitcode} ({self.signal_name()}) received by PID {self.pid}"
        return (
            "The process recorded no traceback: it failed before init_process_group(), or its main function "
            "is not decorated with torch.distributed.elastic.multiprocessing.errors.record"
        )

    @property
    def lost_another(self):
        """Whether it failed because a collective found another process gone."""
        return self.message.startswith("DistBackendError")

    def traceback(self):
        return self.recorded["extraInfo"]["py_callstack"] if self.recorded else ""

    def signal_name(self) -> str:
        try:
            return signal.Signals(-self.exitcode).name
        except ValueError:
            return "<N/A>"

    def timestamp_isoformat(self):
        return time.strftime("%Y-%m-%d_%H:%M:%S", time.localtime(self.timestamp))


class ChildFailedError(Exception):
    """Processes of a job failed; the text begins with the one that failed first, and its traceback."""

    def __init__(self, name: str, failures: dict):
        self.name, self.failures = name, failures
        assert self.failures
        super().__init__(self._text())

    def get_first_failure(self):
        """(global rank, failure) of the process that failed first; those that only lost it come later."""
        rank = min(self.failures, key=lambda r: (self.failures[r].lost_another, self.failures[r].timestamp))
        return rank, self.failures[rank]

    def _text(self):
        rank, first = self.get_first_failure()
        others = [self._entry(r, f) for r, f in self.failures.items() if r != rank]
        lines = [
            f"{self.name} FAILED",
            "-" * 60,
            f"Root cause (first observed failure):\n{self._entry(rank, first)}",
            first.traceback().rstrip() or f"  {first.message}",
            "-" * 60,
            "Other failures:" if others else "Other failures: none",
            *others,
        ]
        return "\n".join(lines)

    @staticmethod
    def _entry(rank, failure):
        host = socket.gethostname()
        return (
            f"  time: {failure.timestamp_isoformat()}, host: {host}, rank: {rank} (local_rank: "
            f"{failure.local_rank}), exitcode: {failure.exitcode} (pid: {failure.pid})"
        )
