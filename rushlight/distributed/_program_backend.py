"""Process groups that programs write in Python, with the methods of PyTorch's `ProcessGroup`.

Such a class derives from `torch.distributed.ProcessGroup` and defines, of these, what its programs use; each
returns a `Work`:

    allreduce(tensors, options)              allreduce_coalesced(tensors, options)
    broadcast(tensors, options)              reduce(tensors, options)
    allgather(lists, tensors, options)       _allgather_base(output, input, options)
    gather(lists, tensors, options)          scatter(tensors, lists, options)
    reduce_scatter(tensors, lists, options)  _reduce_scatter_base(output, input, options)
    alltoall_base(output, input, output_rows, input_rows, options)
    barrier(options)                         send(tensors, rank, tag)
    recv(tensors, rank, tag)                 recv_anysource(tensors, tag)
"""

from __future__ import annotations

from typing import Any

from . import _options as options
from ._work import Worker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class ProgramBackend:
    """The engine of a group whose collectives are methods of the program's `group`."""

    def __init__(self, group: Any, timeout: Any) -> None:
        self._group, self.timeout = group, timeout
        self._worker: Worker | None = None

    @property
    def rank(self):
        return self._group.rank()

    @property
    def size(self):
        return self._group.size()

    def submit(self, body: Callable[[], Any]):
        """The Work of body(), run by a thread of this group."""
        if self._worker is None:
            self._worker = Worker(f"{type(self._group).__name__}-{self.rank}")
        return self._worker.submit(body)

    def close(self) -> None:
        if self._worker is not None:
            self._worker.stop()
        if hasattr(self._group, "shutdown"):
            self._group.shutdown()

    def _has(self, method):
        from ._process_group import ProcessGroup

        return getattr(type(self._group), method, None) not in (None, getattr(ProcessGroup, method, None))

    def _call(self, async_op, methods, *choices):
        """Call the first of these methods that the program defined; `choices` are the arguments of each."""
        for method, arguments in zip(methods, choices):
            if self._has(method):
                work = getattr(self._group, method)(*arguments())
                if not async_op:
                    work.wait(options.NO_LIMIT)
                return work
        name = type(self._group).__name__
        raise NotImplementedError(f"Backend {name} does not support {methods[0]}: define {name}.{methods[0]}")

    def all_reduce(self, tensors, op, async_op=False):
        one = ["allreduce"], lambda: (tensors, options.AllreduceOptions(op))
        if len(tensors) == 1:
            return self._call(async_op, *one)
        together = lambda: (tensors, options.AllreduceCoalescedOptions(op))  # noqa: E731
        return self._call(async_op, ["allreduce_coalesced", *one[0]], together, one[1])

    def broadcast(self, tensor, root, async_op=False):
        return self._call(async_op, ["broadcast"], lambda: ([tensor], options.BroadcastOptions(root)))

    def reduce(self, tensor, root, op, async_op=False):
        return self._call(async_op, ["reduce"], lambda: ([tensor], options.ReduceOptions(op, root)))

    def all_gather(self, outputs, tensor, async_op=False):
        lists = lambda: ([outputs], [tensor], options.AllgatherOptions())  # noqa: E731
        return self._call(async_op, ["allgather"], lists)

    def all_gather_into(self, output, tensor, async_op=False):
        parts = list(output.view(self.size, *tensor.shape).unbind())
        return self._call(
            async_op,
            ["_allgather_base", "allgather"],
            lambda: (output, tensor, options.AllgatherOptions()),
            lambda: ([parts], [tensor], options.AllgatherOptions()),
        )

    def gather(self, tensor, outputs, root, async_op=False):
        lists = [list(outputs)] if self.rank == root else []
        return self._call(async_op, ["gather"], lambda: (lists, [tensor], options.GatherOptions(root)))

    def scatter(self, output, inputs, root, async_op=False):
        lists = [list(inputs)] if self.rank == root else []
        return self._call(async_op, ["scatter"], lambda: ([output], lists, options.ScatterOptions(root)))

    def reduce_scatter(self, output, tensor, op, async_op=False):
        parts = list(tensor.view(self.size, *output.shape).unbind())
        return self._call(
            async_op,
            ["_reduce_scatter_base", "reduce_scatter"],
            lambda: (output, tensor, options.ReduceScatterOptions(op)),
            lambda: ([output], [parts], options.ReduceScatterOptions(op)),
        )

    def all_to_all(self, output, tensor, output_rows, input_rows, async_op=False, finish=None):
        sizes = list(output_rows or []), list(input_rows or [])
        arguments = lambda: (output, tensor, *sizes, options.AllToAllOptions())  # noqa: E731
        if finish is None:
            return self._call(async_op, ["alltoall_base"], arguments)
        if async_op:
            return self.submit(lambda: (self._call(False, ["alltoall_base"], arguments), finish())[1])
        work = self._call(False, ["alltoall_base"], arguments)
        finish()
        return work

    def barrier(self, async_op=False, timeout=None):
        limit = options.NO_LIMIT if timeout is None else timeout
        return self._call(async_op, ["barrier"], lambda: (options.BarrierOptions(timeout=limit),))

    def send(self, tensor, destination, tag):
        return self._call(True, ["send"], lambda: ([tensor], destination, tag))

    def receive(self, tensor, source, tag):
        if source < 0:
            return self._call(True, ["recv_anysource"], lambda: ([tensor], tag))
        return self._call(True, ["recv"], lambda: ([tensor], source, tag))
