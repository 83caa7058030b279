"""Process groups on Gloo: collectives of CPU tensors."""

import ctypes
import os
from time import time_ns

from rushlight._command.names import show_from

from .. import _C, Tensor, frombuffer, no_grad, stack, uint8, view_as_complex, view_as_real
from . import _recorder
from ._engine import Engine, milliseconds_of
from ._errors import DistBackendError
from ._reduce_op import RedOpType, op_of
from ._sparse_sums import check_sparse_sum, sum_of_all
from ._work import MessageWork


def _engine():
    try:
        from .. import _gloo
    except ImportError as error:
        if "_gloo" in str(error):
            return None
        raise
    return _gloo


def is_gloo_available() -> bool:
    """Whether this build has the Gloo backend."""
    return _engine() is not None


def make_group(store, rank, size, timeout):
    """A `_gloo.Group`; GLOO_SOCKET_IFNAME names the network interface to use."""
    gloo = _engine()
    if gloo is None:
        raise DistBackendError(
            "gloo: this build has no Gloo backend. Install Gloo (Debian, Ubuntu: libgloo-dev) and build again"
        )
    interface = os.environ.get("GLOO_SOCKET_IFNAME", "").split(",")[0]
    try:
        return gloo.Group(store, rank, size, "", interface, milliseconds_of(timeout))
    except RuntimeError as error:
        why = str(error).replace("std::bad_alloc", "out of memory")  # of a thread of Gloo's own
        raise DistBackendError(
            f"gloo: rank {rank} of {size} could not connect to the others: {why}"
        ) from None


def _in_order(tensor):
    """The tensor if its memory holds its elements in order, as they are; else a copy."""
    return tensor.detach().contiguous().resolve_conj().resolve_neg()


def _flat(tensor):
    """Contiguous memory of real numbers with the tensor's elements: its own where it is contiguous."""
    tensor = _in_order(tensor)
    return view_as_real(tensor) if tensor.is_complex() else tensor


def _copy_back(flat, tensor):
    if flat.data_ptr() != tensor.data_ptr():
        with no_grad():
            tensor.detach().copy_(view_as_complex(flat) if tensor.is_complex() else flat)


def _size_in_bytes(tensor):
    return tensor.numel() * tensor.element_size()


class GlooGroup(Engine):
    name = "gloo"

    def __init__(self, store, rank, size, timeout):
        super().__init__(rank, size, timeout)
        self._group = self._connect(store) if size > 1 else None

    def _connect(self, store):
        return make_group(store, self.rank, self.size, self.timeout)

    def close(self):
        super().close()
        self._group = None

    def _collect(self, body, tag, milliseconds):
        body(self._group if self.size > 1 else _Alone(), tag, milliseconds)

    def _exchange_texts(self, text, number, milliseconds):
        """Every rank's text, of the first 512 bytes."""
        mine = frombuffer(bytearray(text.encode()[:512].ljust(512)), dtype=uint8)
        everyones = mine.new_empty((self.size, 512))
        tag = (number & 0x3FFF) << 18 | 0xFF
        self._group.allgather(mine.data_ptr(), everyones.data_ptr(), 512, tag, milliseconds)
        return [bytes(row.tolist()).decode(errors="replace").rstrip() for row in everyones]

    # --- reductions

    def all_reduce(self, tensors, op, async_op=False):
        operation = op_of(op)
        if any(tensor.is_sparse for tensor in tensors):
            return self._all_reduce_sparse(tensors, operation, async_op)

        def body(group, tag, milliseconds):
            for index, tensor in enumerate(tensors):
                if tensor.numel() == 0:
                    continue
                flat = _flat(tensor)
                group.allreduce(*_reduced(flat, operation), (tag << 8) + (index & 0xFF), milliseconds)
                self._finish_reduction(flat, tensor, operation)

        return self._start("all_reduce", tensors, body, tensors, async_op)

    def _all_reduce_sparse(self, tensors, operation, async_op):
        check_sparse_sum(tensors, operation)
        (tensor,) = tensors

        def body(group, tag, milliseconds):
            sum_of_all(
                tensor, lambda part, n: self._gathered(group.allgather, part, (tag << 8) + n, milliseconds)
            )

        held = [tensor.detach().coalesce().values()]
        return self._start("all_reduce_sparse", held, body, tensors, async_op)

    def reduce(self, tensor, root, op, async_op=False):
        operation = op_of(op)

        def body(group, tag, milliseconds):
            flat = _flat(tensor)
            group.reduce(*_reduced(flat, operation), root, tag << 8, milliseconds)
            if self.rank == root:
                self._finish_reduction(flat, tensor, operation)

        written = [tensor] if self.rank == root else []
        return self._start("reduce", [tensor], body, [tensor], async_op, written=written)

    def _finish_reduction(self, flat, tensor, operation):
        if operation == RedOpType.AVG:
            flat.div_(self.size)
        _copy_back(flat, tensor)

    # --- moves

    def broadcast(self, tensor, root, async_op=False):
        def body(group, tag, milliseconds):
            if tensor.numel() == 0:
                return
            flat = _flat(tensor)
            group.broadcast(flat.data_ptr(), _size_in_bytes(flat), root, tag << 8, milliseconds)
            _copy_back(flat, tensor)

        written = [] if self.rank == root else [tensor]
        return self._start("broadcast", [tensor], body, [tensor], async_op, written=written)

    def all_gather(self, outputs, tensor, async_op=False):
        """`outputs`: one tensor of the input's shape for each rank."""

        def body(group, tag, milliseconds):
            stacked = self._gathered(group.allgather, tensor, tag << 8, milliseconds)
            for part, output in zip(stacked, outputs, strict=True):
                output.detach().copy_(part)

        return self._start("all_gather", [tensor], body, outputs, async_op)

    def all_gather_into(self, output, tensor, async_op=False):
        """`output`: contiguous room for the input of every rank, one after the other."""

        def body(group, tag, milliseconds):
            source, target = _in_order(tensor), _in_order(output)
            if source.numel():
                group.allgather(
                    source.data_ptr(), target.data_ptr(), _size_in_bytes(source), tag << 8, milliseconds
                )
            if target.data_ptr() != output.data_ptr():
                output.detach().copy_(target)

        return self._start("all_gather_into_tensor", [tensor], body, [output], async_op)

    def _gathered(self, collective, tensor, *rest):
        source = _in_order(tensor)
        stacked = source.new_empty((self.size, *source.shape))
        if source.numel():
            collective(source.data_ptr(), stacked.data_ptr(), _size_in_bytes(source), *rest)
        return stacked

    def gather(self, tensor, outputs, root, async_op=False):
        def body(group, tag, milliseconds):
            stacked = self._gathered(group.gather, tensor, root, tag << 8, milliseconds)
            if self.rank == root:
                for part, output in zip(stacked, outputs, strict=True):
                    output.detach().copy_(part)

        return self._start("gather", [tensor], body, outputs or [], async_op)

    def scatter(self, output, inputs, root, async_op=False):
        def body(group, tag, milliseconds):
            target = _in_order(output)
            parts = stack([part.detach() for part in inputs]) if self.rank == root else target
            if target.numel():
                group.scatter(
                    parts.data_ptr(), target.data_ptr(), _size_in_bytes(target), root, tag << 8, milliseconds
                )
            if target.data_ptr() != output.data_ptr():
                output.detach().copy_(target)

        return self._start("scatter", [output], body, [output], async_op)

    def all_to_all(self, output, tensor, output_rows, input_rows, async_op=False, finish=None):
        """Rows of `tensor` to every rank, in order, and theirs into `output`; how many of each is given."""

        def body(group, tag, milliseconds):
            source, target = _in_order(tensor), _in_order(output)
            sent, received = _row_bytes(source, input_rows), _row_bytes(target, output_rows)
            group.alltoall(source.data_ptr(), sent, target.data_ptr(), received, tag << 8, milliseconds)
            if target.data_ptr() != output.data_ptr():
                output.detach().copy_(target)
            if finish is not None:
                finish()

        return self._start("all_to_all", [tensor], body, [output], async_op)

    def reduce_scatter(self, output, tensor, op, async_op=False):
        """`tensor`: a part for every rank, one after the other; each rank gets the reduction of its parts."""
        operation = op_of(op)
        parts = output.new_empty((self.size, *output.shape))

        def finish():
            if operation in (RedOpType.SUM, RedOpType.AVG):
                total = parts.sum(0, dtype=parts.dtype)
                output.detach().copy_(total.div_(self.size) if operation == RedOpType.AVG else total)
            else:
                output.detach().copy_(_reduce_parts(parts, operation))

        rows = [1] * self.size
        return self.all_to_all(
            parts, tensor.detach().reshape(parts.shape), rows, rows, async_op, finish=finish
        )

    def barrier(self, async_op=False, timeout=None):
        def body(group, tag, milliseconds):
            group.barrier(tag << 8, milliseconds)

        return self._start("barrier", [], body, [], async_op, timeout)

    # --- messages

    def send(self, tensor, destination, tag):
        flat = _in_order(tensor)
        message = self._group.send(flat.data_ptr(), _size_in_bytes(flat), destination, tag)

        def move(milliseconds):
            message.wait_sent(milliseconds)
            return self.rank

        return self._message("send", flat, destination, move, [flat])

    def receive(self, tensor, source, tag):
        """`source` -1: from whoever sends first."""
        _C._check_writable(tensor, "recv")
        flat = _in_order(tensor)
        message = self._group.receive(flat.data_ptr(), _size_in_bytes(flat), source, tag)

        def move(milliseconds):
            rank = message.wait_received(milliseconds)
            if flat.data_ptr() != tensor.data_ptr():
                tensor.detach().copy_(flat)
            return rank

        return self._message("recv", flat, source, move, [tensor])

    def _message(self, what, tensor, peer, move, results):
        limit = milliseconds_of(self.timeout)
        entry = _recorder.begin(self, None, what, [tensor], limit, peer)
        entry[_recorder.STARTED] = entry[_recorder.CREATED]

        def wait(timeout):
            try:
                rank = move(milliseconds_of(timeout or self.timeout))
            except RuntimeError as error:
                raise DistBackendError(self._failed(entry, error)) from None
            entry[_recorder.ENDED] = time_ns()
            return rank

        return MessageWork(wait, results)


def _reduced(flat: Tensor, operation):
    """The arguments that tell Gloo what to reduce, and how."""
    name = "SUM" if operation == RedOpType.AVG else operation.name
    return flat.data_ptr(), flat.numel(), str(flat.dtype).split(".")[-1], name


def _reduce_parts(parts, operation):
    combine = {
        RedOpType.PRODUCT: lambda a, b: a * b,
        RedOpType.MIN: lambda a, b: a.minimum(b),
        RedOpType.MAX: lambda a, b: a.maximum(b),
        RedOpType.BAND: lambda a, b: a & b,
        RedOpType.BOR: lambda a, b: a | b,
        RedOpType.BXOR: lambda a, b: a ^ b,
    }[operation]
    total = parts[0]
    for part in parts[1:]:
        total = combine(total, part)
    return total


def _row_bytes(tensor, rows):
    row = _size_in_bytes(tensor) // tensor.shape[0] if tensor.dim() and tensor.shape[0] else 0
    return [count * row for count in rows]


class _Alone:
    """The collectives of a group of one, where every result is the input."""

    def allreduce(self, *_):
        pass

    reduce = broadcast = barrier = allreduce

    def allgather(self, source, target, count, *_):
        ctypes.memmove(target, source, count)

    gather = scatter = allgather

    def alltoall(self, source, sent, target, *_):
        self.allgather(source, target, sum(sent))


show_from("distributed.distributed_c10d", GlooGroup, is_gloo_available)
