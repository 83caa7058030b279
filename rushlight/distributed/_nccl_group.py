"""Process groups on NCCL: collectives of CUDA tensors, which run on streams of their own.

A call returns when the device has taken it over. Its communicator's stream waits for what the caller's stream
was given before, and `Work.wait` (at once, where `async_op` is False) lets the caller's stream wait for it.
Communicators are made by the first call on a device, those of two ranks by the first message between them.
"""

import os
from contextlib import contextmanager
from datetime import timedelta

from .. import strided
from . import _recorder
from ._debug import DebugLevel, get_debug_level
from ._engine import Engine, milliseconds_of
from ._errors import DistBackendError
from ._gloo_group import _copy_back, _flat, _row_bytes, _size_in_bytes
from ._nccl_communicator import Communicator
from ._nccl_library import OPERATIONS, Factor, dtype_number, require
from ._nccl_watchdog import Watchdog, failure
from ._nccl_work import NcclWork
from ._reduce_op import PremultipliedSum, RedOpType, op_of

_BYTES = 1  # NCCL's uint8


class _Plan:
    """What one collective asks of NCCL: `calls` as one group, then `finish` on the same stream."""

    def __init__(self, calls, kept=(), finish=None):
        self.calls, self.kept, self.finish = calls, list(kept), finish


class NcclGroup(Engine):
    name = "nccl"

    def __init__(self, store, rank, size, timeout):
        require()
        super().__init__(rank, size, timeout)
        self._store, self._communicators, self._made = store, {}, 0
        self._watchdog, self._failure = Watchdog(self), None
        self._batch = None  # the calls of a coalesced block

    # --- communicators

    def _communicator(self, device, peer=None):
        """Of all ranks on a device, or of this rank and a peer."""
        key = (device, peer)
        if key not in self._communicators:
            if peer is None:
                name, rank, size = f"nccl/{self._made}", self.rank, self.size
                self._made += 1
            else:
                name, rank, size = (
                    f"nccl/{min(self.rank, peer)}:{max(self.rank, peer)}",
                    int(self.rank > peer),
                    1 + (peer != self.rank),
                )
            urgent = -1 if os.environ.get("TORCH_NCCL_HIGH_PRIORITY") == "1" else 0
            self._communicators[key] = Communicator(
                device, rank, size, self._store, name, self.timeout, urgent
            )
        return self._communicators[key]

    def error(self):
        """What NCCL says went wrong, or None."""
        return next(filter(None, (c.error() for c in list(self._communicators.values()))), None)

    def fail(self, work, why):
        """Give up all that is under way; every later call raises."""
        if self._failure is None:
            self._failure = failure(self, work._entry, why)
            self.abort()
        for pending in {work, *self._watchdog.pending()}:
            pending._end(self._failure)

    def abort(self):
        """End the communicators without waiting."""
        if self._failure is None:
            self._failure = DistBackendError("NCCL communicator was aborted on this rank")
        for communicator in self._communicators.values():
            communicator.abort()

    def close(self):
        self._watchdog.stop()
        for communicator in self._communicators.values():
            communicator.close()
        self._communicators.clear()
        super().close()

    # --- launching

    def _check(self, what, tensors):
        if self._failure is not None:
            raise self._failure
        for tensor in tensors:
            if not tensor.is_cuda or tensor.layout is not strided:
                raise DistBackendError(
                    f"{self.name}: {what} takes dense CUDA tensors, but got one of layout {tensor.layout} on "
                    f"{tensor.device}; move it with .cuda(), or use a group with backend='cpu:gloo,cuda:nccl'"
                )
            if tensor.device != tensors[0].device:
                raise DistBackendError(
                    f"{self.name}: {what} takes tensors of one device, but got {tensors[0].device} and "
                    f"{tensor.device}"
                )

    def _start(self, what, tensors, plan, results, async_op, timeout=None, peer=None, alone=False):
        """Give the calls of `plan()` to the device; `alone`: a message outside of a batch."""
        from .. import cuda

        self._check(what, tensors)
        if self._batch is not None:
            return self._batch.add(what, tensors, plan(), results)
        number = None
        if peer is None:
            number = self._number = self._number + 1
        limit = timeout or self.timeout
        entry = _recorder.begin(self, number, what, tensors, milliseconds_of(limit), peer)
        device = tensors[0].device.index
        with cuda.device(device):
            try:
                if number is not None and get_debug_level() == DebugLevel.DETAIL and self.size > 1:
                    self._compare(entry, number, milliseconds_of(limit))
                communicator = self._communicator(device, peer if alone else None)
                work = self._launch(communicator, plan(), entry, limit, results)
            except RuntimeError as error:
                raise DistBackendError(self._failed(entry, error)) from None
        if not async_op:
            work.wait()
        return work

    def _launch(self, communicator, plan, entry, timeout, results):
        from .. import cuda

        stream = communicator.stream
        stream.wait_stream(cuda.current_stream(communicator.device))
        communicator.run(plan.calls)
        if plan.finish is not None:
            with cuda.stream(stream):
                plan.finish()
        event = stream.record_event()
        kept = [*plan.kept, *results]
        work = NcclWork(self, entry, event, communicator.device, timeout, results, kept)
        if not stream.is_capturing():  # of a graph nothing can be asked
            self._watchdog.add(work)
        return work

    @contextmanager
    def coalesced(self):
        """Inside, calls are collected; at its end they reach the device as one. Yields the Works."""
        if self._batch is not None:
            raise RuntimeError("nccl: a coalesced block is inside of another one")
        done, batch = [], _Batch()
        self._batch = batch
        try:
            yield done
        finally:
            self._batch = None
        if batch.calls:
            plan = _Plan(batch.calls, batch.kept, batch.finish)
            done.append(self._start("coalesced", batch.tensors, lambda: plan, batch.results, True))

    # --- reductions

    def all_reduce(self, tensors, op, async_op=False):
        def plan():
            flat = [_flat(t) for t in tensors if t.numel()]
            calls = [("ncclAllReduce", f.data_ptr(), f.data_ptr(), f.numel(), *_reduced(f, op)) for f in flat]
            filled = [t for t in tensors if t.numel()]
            return _Plan(calls, flat, lambda: _copy_all(flat, filled))

        return self._start("all_reduce", tensors, plan, tensors, async_op)

    def reduce(self, tensor, root, op, async_op=False):
        def plan():
            flat = _flat(tensor)
            call = ("ncclReduce", flat.data_ptr(), flat.data_ptr(), flat.numel(), *_reduced(flat, op), root)
            finish = (lambda: _copy_back(flat, tensor)) if self.rank == root else None
            return _Plan([call], [flat], finish)

        return self._start("reduce", [tensor], plan, [tensor], async_op)

    def reduce_scatter(self, output, tensor, op, async_op=False):
        def plan():
            source, target = _flat(tensor), _flat(output)
            call = (
                "ncclReduceScatter",
                source.data_ptr(),
                target.data_ptr(),
                target.numel(),
                *_reduced(target, op),
            )
            return _Plan([call], [source, target], lambda: _copy_back(target, output))

        return self._start("reduce_scatter", [output, tensor], plan, [output], async_op)

    # --- moves: of bytes

    def broadcast(self, tensor, root, async_op=False):
        def plan():
            flat = _flat(tensor)
            call = ("ncclBroadcast", flat.data_ptr(), flat.data_ptr(), _size_in_bytes(flat), _BYTES, root)
            return _Plan([call], [flat], lambda: _copy_back(flat, tensor))

        return self._start("broadcast", [tensor], plan, [tensor], async_op)

    def all_gather(self, outputs, tensor, async_op=False):
        def plan():
            source = _flat(tensor)
            stacked = source.new_empty((self.size, *source.shape))
            call = _gathering(source, stacked)
            return _Plan([call], [source, stacked], lambda: _hand_out(stacked, outputs))

        return self._start("all_gather", [tensor, *outputs], plan, outputs, async_op)

    def all_gather_into(self, output, tensor, async_op=False):
        def plan():
            source, target = _flat(tensor), _flat(output)
            finish = lambda: _copy_back(target, output)  # noqa: E731
            return _Plan([_gathering(source, target)], [source, target], finish)

        return self._start("all_gather_into_tensor", [tensor, output], plan, [output], async_op)

    def all_to_all(self, output, tensor, output_rows, input_rows, async_op=False, finish=None):
        def plan():
            source, target = _flat(tensor), _flat(output)
            calls = _exchanged(source.data_ptr(), _row_bytes(source, input_rows), "ncclSend")
            calls += _exchanged(target.data_ptr(), _row_bytes(target, output_rows), "ncclRecv")

            def end():
                _copy_back(target, output)
                if finish is not None:
                    finish()

            return _Plan(calls, [source, target], end)

        return self._start("all_to_all", [tensor, output], plan, [output], async_op)

    def gather(self, tensor, outputs, root, async_op=False):
        def plan():
            source = _flat(tensor)
            size = _size_in_bytes(source)
            calls, kept, finish = [("ncclSend", source.data_ptr(), size, _BYTES, root)], [source], None
            if self.rank == root:
                stacked = source.new_empty((self.size, *source.shape))
                calls += _exchanged(stacked.data_ptr(), [size] * self.size, "ncclRecv")
                kept.append(stacked)
                finish = lambda: _hand_out(stacked, outputs)  # noqa: E731
            return _Plan(calls, kept, finish)

        return self._start("gather", [tensor], plan, outputs or [], async_op)

    def scatter(self, output, inputs, root, async_op=False):
        def plan():
            target = _flat(output)
            size = _size_in_bytes(target)
            calls, kept = [("ncclRecv", target.data_ptr(), size, _BYTES, root)], [target]
            if self.rank == root:
                parts = [_flat(part) for part in inputs]
                sends = [("ncclSend", p.data_ptr(), size, _BYTES, peer) for peer, p in enumerate(parts)]
                calls, kept = sends + calls, kept + parts
            return _Plan(calls, kept, lambda: _copy_back(target, output))

        return self._start("scatter", [output], plan, [output], async_op)

    def barrier(self, async_op=False, timeout=None):
        from .. import cuda, zeros

        known = [device for device, peer in self._communicators if peer is None]
        device = known[0] if known else cuda.current_device()
        work = self.all_reduce([zeros(1, device=f"cuda:{device}")], RedOpType.SUM, True)
        work._waits_on_host = True
        if not async_op:
            work.wait(timeout)
        return work

    # --- messages

    def send(self, tensor, destination, tag):
        def plan():
            flat = _flat(tensor)
            peer = self._peer(destination)
            return _Plan([("ncclSend", flat.data_ptr(), _size_in_bytes(flat), _BYTES, peer)], [flat])

        return self._start("send", [tensor], plan, [tensor], True, peer=destination, alone=True)

    def receive(self, tensor, source, tag):
        if source < 0:
            raise ValueError("nccl: recv needs a source; NCCL has no messages from anyone")

        def plan():
            flat = _flat(tensor)
            call = ("ncclRecv", flat.data_ptr(), _size_in_bytes(flat), _BYTES, self._peer(source))
            return _Plan([call], [flat], lambda: _copy_back(flat, tensor))

        return self._start("recv", [tensor], plan, [tensor], True, peer=source, alone=True)

    def _peer(self, rank):
        """In a batch messages travel on the communicator of all, else on one of the two ranks."""
        return rank if self._batch is not None else int(self.rank < rank)

    # --- checks beforehand: what a group of one backend has no CPU tensors for

    def _exchange_texts(self, text, number, milliseconds):
        self._store.set(f"said/{number}/{self.rank}", text)
        texts = []
        for rank in range(self.size):
            self._store.wait([f"said/{number}/{rank}"], timedelta(milliseconds=milliseconds))
            texts.append(bytes(self._store.get(f"said/{number}/{rank}")).decode(errors="replace"))
        return texts


class _Batch:
    """The calls of a coalesced block."""

    def __init__(self):
        self.calls, self.tensors, self.kept, self.results, self._finishes = [], [], [], [], []

    def add(self, what, tensors, plan, results):
        self.calls += plan.calls
        self.tensors += tensors
        self.kept += [*plan.kept, *tensors]
        self.results += results
        if plan.finish is not None:
            self._finishes.append(plan.finish)

    def finish(self):
        for finish in self._finishes:
            finish()


def _reduced(flat, op):
    """NCCL's numbers of a reduction's dtype and operation. Booleans: any for sums, all for products."""
    if isinstance(op, PremultipliedSum):
        return dtype_number(flat.dtype), Factor(op.factor, flat)
    name = op_of(op).name
    if str(flat.dtype).endswith(".bool"):
        if name == "AVG":
            raise TypeError("Cannot use ReduceOp.AVG with bool inputs")
        name = {"SUM": "MAX", "PRODUCT": "MIN"}.get(name, name)
    if name not in OPERATIONS:
        raise RuntimeError(f"Cannot use ReduceOp.{name} with NCCL")
    return dtype_number(flat.dtype), OPERATIONS[name]


def _gathering(source, target):
    return ("ncclAllGather", source.data_ptr(), target.data_ptr(), _size_in_bytes(source), _BYTES)


def _exchanged(address, sizes, name):
    """One message with every rank, for parts that lie one after the other."""
    calls = []
    for peer, size in enumerate(sizes):
        if size:
            calls.append((name, address, size, _BYTES, peer))
        address += size
    return calls


def _hand_out(stacked, outputs):
    for part, output in zip(stacked, outputs, strict=True):
        _copy_back(part, output)


def _copy_all(flat, tensors):
    for each, tensor in zip(flat, tensors, strict=True):
        _copy_back(each, tensor)
