"""What the backends of process groups have in common: calls are numbered, recorded, and run now or later.

A call's number is the same on all ranks and keeps calls apart that run at the same time. The tag under which
its bytes travel also says what kind of call it is: calls that do not fit together never exchange anything.
"""

import zlib
from datetime import timedelta
from time import time_ns

from .. import _C, strided
from . import _recorder
from ._debug import DebugLevel, get_debug_level
from ._errors import DistBackendError
from ._recorder import ENDED, ERROR, STARTED
from ._work import Worker, finished

_ANY_SHAPE = {"all_to_all", "all_reduce_sparse"}  # whose tensors may differ between ranks


def milliseconds_of(timeout: timedelta) -> int:
    return max(1, round(timeout.total_seconds() * 1000))


_kinds: dict = {}


def _kind(what, tensors):
    """Ten bits that are equal for calls which fit together."""
    key = (what, *((t.dtype, t.numel()) for t in tensors)) if what not in _ANY_SHAPE else what
    kind = _kinds.get(key)
    if kind is None:
        if len(_kinds) > 10_000:
            _kinds.clear()
        kind = _kinds[key] = zlib.crc32(repr(key).encode()) & 0x3FF
    return kind


class Engine:
    """The collectives of one group; ranks are the group's.

    A subclass has `_collect(body, tag, milliseconds)`, which runs body(transport, tag, milliseconds).
    Synchronous calls run on the caller's thread, asynchronous ones on the group's own.
    """

    name = "undefined"
    in_order = False  # whether calls must reach the transport in the order in which they were made

    def __init__(self, rank, size, timeout):
        self.rank, self.size, self.timeout = rank, size, timeout
        self.group_name = "0"
        self._number = 0
        self._worker = Worker(f"{self.name}-{rank}")
        self._watch = None  # tells what the other ranks are doing

    def watch_with(self, watch, group_name):
        self._watch, self.group_name = watch, group_name

    def close(self):
        self._worker.stop()

    def submit(self, body):
        """The Work of body(), which the group's thread runs between the calls before and after this one."""
        return self._worker.submit(body)

    def _start(self, what, tensors, body, results, async_op, timeout=None, written=None):
        """Run body(transport, tag, milliseconds) now or, when asynchronous, on the group's thread.

        It writes to the results, or to fewer: those in ``written``.
        """
        for tensor in results if written is None else written:
            _C._check_writable(tensor, what)
        for tensor in tensors:
            if not tensor.is_cpu or tensor.layout is not strided:
                raise DistBackendError(
                    f"{self.name}: {what} takes dense CPU tensors, but got one of layout {tensor.layout} on "
                    f"{tensor.device}; move it with .cpu()"
                )
        number = self._number = self._number + 1
        milliseconds = milliseconds_of(timeout or self.timeout)
        # 14 bits of the number, 10 of the kind; the 8 lowest ones are the body's.
        tag = (number & 0x3FFF) << 10 | _kind(what, tensors)
        entry = _recorder.begin(self, number, what, tensors, milliseconds)

        def run():
            entry[STARTED] = time_ns()
            try:
                if get_debug_level() == DebugLevel.DETAIL and self.size > 1:
                    self._compare(entry, number, milliseconds)
                self._collect(body, tag, milliseconds)
            except RuntimeError as error:
                raise DistBackendError(self._failed(entry, error)) from None
            entry[ENDED] = time_ns()
            return results

        if async_op:
            return self._worker.submit(run)
        if self.in_order and self.size > 1:
            self._worker.submit(run).wait()
        else:
            run()
        return finished(results)

    def _failed(self, entry, error):
        """What to say about a call that failed: itself, and where the other ranks are."""
        if isinstance(error, DistBackendError):
            entry[ERROR] = str(error)
            entry[ENDED] = time_ns()
            return str(error)
        number = "-" if entry[_recorder.NUMBER] is None else entry[_recorder.NUMBER]
        said = (
            f"{entry[_recorder.WHAT]} ({_recorder.described(entry[_recorder.TENSORS][:4])}; call number "
            f"{number} of rank {self.rank} of {self.size}, at {_recorder.place(entry)}): {error}. Another "
            "rank ended, did not make this call in time, or made another one"
        )
        if self._watch is not None:
            said += self._watch.report(self.group_name, entry)
        entry[ERROR] = str(error)
        entry[ENDED] = time_ns()
        if self._watch is not None:
            _recorder.dump_if_wanted(self._watch.rank)
        return said

    # --- checks beforehand, for TORCH_DISTRIBUTED_DEBUG=DETAIL

    def _compare(self, entry, number, milliseconds):
        """Raise on every rank when the ranks are about to make calls that do not fit together."""
        what, tensors = entry[_recorder.WHAT], entry[_recorder.TENSORS]
        mine = f"{what}|{'' if what in _ANY_SHAPE else _recorder.described(tensors)}|{_recorder.place(entry)}"
        texts = self._exchange_texts(mine, number, milliseconds)
        for rank, text in enumerate(texts):
            if text.split("|")[:2] != texts[0].split("|")[:2]:
                raise DistBackendError(
                    f"Detected mismatch between collectives on ranks. Rank {self.rank} is running "
                    f"collective: {_fingerprint(texts[self.rank], number)}, but Rank "
                    f"{rank if rank != self.rank else 0} is running collective: "
                    f"{_fingerprint(texts[rank if rank != self.rank else 0], number)}."
                )


def _fingerprint(text, number):
    what, tensors, where = text.split("|", 2)
    return f"{what}({tensors}; call number {number}, at {where})"
