"""Averaging gradients while the backward pass still runs: the engine of DistributedDataParallel.

Source: Li et al., "PyTorch Distributed: Experiences on Accelerating Data Parallel Training", VLDB 2020,
section 3.2. Parameters are put into buckets in reverse order, about the order in which their gradients come.
A bucket whose gradients are all there is averaged on the group's thread; buckets start in the same order on
every rank.
"""

from typing import Any

from .. import Tensor, empty, int32, int64, mul, sparse_coo_tensor, zeros
from .._C import _engine_queue_callback
from ._work import future_of

_FIRST_BUCKET_BYTES = 1 << 20


class GradBucket:
    """The gradients that a communication hook averages together."""

    def __init__(self, index, is_last, buffer, gradients, parameters):
        self._index, self._is_last, self._buffer = index, is_last, buffer
        self._gradients, self._parameters = gradients, parameters

    def index(self):
        return self._index

    def is_last(self):
        return self._is_last

    def buffer(self):
        """All gradients one after the other, 1-d."""
        return self._buffer

    def set_buffer(self, buffer):
        self._buffer = buffer

    def gradients(self):
        """Views of the buffer with the parameters' shapes."""
        return self._gradients

    def parameters(self):
        return self._parameters


class _Bucket:
    """Dense gradients, one after the other in a buffer."""

    def __init__(self, indices, parameters):
        self.indices = indices
        first = parameters[indices[0]]
        sizes = [parameters[i].numel() for i in indices]
        self.buffer = empty(sum(sizes), dtype=first.dtype, device=first.device)
        self.views = [
            part.view(parameters[i].shape) for i, part in zip(indices, self.buffer.split(sizes), strict=True)
        ]
        self.pending = len(indices)
        self.future: Any = None

    def take(self, position, gradient, factor):
        """Put a gradient (None: zeros) at its place, times a factor if there is one."""
        view = self.views[position]
        if gradient is None:
            view.zero_()
            return
        gradient = gradient.detach()
        if gradient.is_sparse:  # of a module that does not say that it makes such
            gradient = gradient.to_dense()
        if factor is not None:  # copied and multiplied in one pass
            mul(gradient, factor, out=view)
        elif gradient.data_ptr() != view.data_ptr():
            view.copy_(gradient)

    def clear(self):
        self.buffer.zero_()

    def replace(self, result):
        """The average that a hook found."""
        if result.data_ptr() != self.buffer.data_ptr():
            self.buffer.copy_(result)

    def hand_out(self, position, parameter, as_view):
        view = self.views[position]
        if as_view:
            if parameter.grad is None or parameter.grad.data_ptr() != view.data_ptr():
                parameter.grad = view.detach()
        elif parameter.grad is None or parameter.grad.is_sparse:
            parameter.grad = view.detach().clone()
        else:
            parameter.grad.detach().copy_(view)


class _SparseBucket:
    """The sparse gradient of one parameter: ranks have different rows of it."""

    def __init__(self, index, parameter):
        self.indices, self.parameter, self.pending = [index], parameter, 1
        self.buffer: Any = None
        self.future: Any = None

    @property
    def views(self):
        return [self.buffer]

    def take(self, position, gradient, factor):
        if gradient is None:
            self.clear()
            return
        gradient = gradient.detach()
        gradient = gradient if gradient.is_sparse else gradient.to_sparse(1)
        self.buffer = (gradient if factor is None else gradient * factor).coalesce()

    def clear(self):
        """No rows."""
        rows, width = self.parameter.shape[0], self.parameter.shape[1:]
        self.buffer = sparse_coo_tensor(
            zeros(1, 0, dtype=int64), self.parameter.detach().new_zeros(0, *width), (rows, *width)
        ).coalesce()

    def replace(self, result):
        self.buffer = result

    def hand_out(self, position, parameter, as_view):
        parameter.grad, self.buffer = self.buffer.detach(), None


def make_buckets(parameters, limit, first_limit=_FIRST_BUCKET_BYTES, alone=()):
    """Lists of indices of parameters, last ones first, each of one dtype and of about `limit` bytes; those
    `alone` have a list each."""
    buckets, open_buckets = [], {}
    for index in reversed(range(len(parameters))):
        parameter = parameters[index]
        if index in alone:
            buckets.append([index])
            continue
        key = (parameter.dtype, parameter.device)
        indices, size = open_buckets.pop(key, ([], 0))
        indices.append(index)
        size += parameter.numel() * parameter.element_size()
        if size >= (limit if buckets else min(first_limit, limit)):
            buckets.append(indices)
        else:
            open_buckets[key] = (indices, size)
    return buckets + [indices for indices, _ in open_buckets.values()]


class Reducer:
    """Averages the gradients of `parameters` over `group`.

    `bucket_bytes` is a bucket's size; with `find_unused` every backward pass is preceded by a search for the
    parameters it will not reach; with `as_views` the gradients live in the buckets; `sparse` are the indices
    of parameters whose gradients are sparse.
    """

    def __init__(self, parameters, names, group, bucket_bytes, find_unused, as_views, sparse=frozenset()):
        self.parameters, self.names, self.group = parameters, names, group
        self.find_unused, self.as_views = find_unused, as_views
        self._buckets = [
            _SparseBucket(indices[0], parameters[indices[0]])
            if indices[0] in sparse
            else _Bucket(indices, parameters)
            for indices in make_buckets(parameters, bucket_bytes, alone=sparse)
        ]
        self._place = {
            index: (number, position)
            for number, bucket in enumerate(self._buckets)
            for position, index in enumerate(bucket.indices)
        }
        self._hook = self._state = None
        self._ready, self._next, self._expects, self._queued = set(), 0, False, False
        self._used, self._used_everywhere = set(range(len(parameters))), None
        self._handles = [
            p.register_post_accumulate_grad_hook(lambda _, index=index: self._on_gradient(index))
            for index, p in enumerate(parameters)
        ]
        self._nodes = None
        self.divisor = None  # instead of the number of processes, while some have run out of inputs

    def register_comm_hook(self, state, hook):
        if self._hook is not None:
            raise RuntimeError("register_comm_hook or register_builtin_comm_hook can only be called once.")
        self._state, self._hook = state, hook

    def parameters_of_buckets(self):
        return [[self.parameters[index] for index in bucket.indices] for bucket in self._buckets]

    # --- one iteration

    def prepare(self, outputs):
        """A forward pass is over: its backward pass will bring the gradients of what `outputs` depend on."""
        if self._expects and self._ready and self._next < len(self._buckets):
            self._refuse()
        for bucket in self._buckets:
            bucket.pending, bucket.future = len(bucket.indices), None
        self._ready, self._next, self._expects, self._queued = set(), 0, True, False
        self._used = self._reached(outputs) if self.find_unused else set(range(len(self.parameters)))

    def _refuse(self):
        missing = [index for index in range(len(self.parameters)) if index not in self._ready]
        raise RuntimeError(
            "Expected to have finished reduction in the prior iteration before starting a new one. This "
            "error indicates that your module has parameters that were not used in producing loss. You can "
            "enable unused parameter detection by passing the keyword argument `find_unused_parameters=True` "
            "to `torch.nn.parallel.DistributedDataParallel`, and by making sure all `forward` function "
            "outputs participate in calculating loss. Parameters which did not receive grad for rank "
            f"{self.group.rank()}: {', '.join(self.names[i] for i in missing)}. Parameter indices which "
            f"did not receive grad for rank {self.group.rank()}: {' '.join(map(str, missing))}"
        )

    def _reached(self, outputs):
        if self._nodes is None:
            self._nodes = {
                p.view_as(p).grad_fn.next_functions[0][0]: index for index, p in enumerate(self.parameters)
            }
        reached, seen = set(), set()
        nodes = [t.grad_fn for t in _tensors(outputs) if t.grad_fn is not None]
        while nodes:
            node = nodes.pop()
            if node in seen:
                continue
            seen.add(node)
            if node in self._nodes:
                reached.add(self._nodes[node])
            nodes += [following for following, _ in node.next_functions if following is not None]
        return reached

    def _on_gradient(self, index):
        if not self._expects:
            return
        if not self._queued:
            self._queued = True
            _engine_queue_callback(self._finish)
            for unused in set(range(len(self.parameters))) - self._used:
                self._mark(unused)
        if index in self._ready:
            raise RuntimeError(
                f"Expected to mark a variable ready only once. Parameter {self.names[index]} got a second "
                "gradient in one backward pass: it is used by several re-entrant backward passes (checkpoint "
                "with use_reentrant=True), or outside of the forward function as well"
            )
        self._mark(index)

    def _mark(self, index):
        self._ready.add(index)
        number, position = self._place[index]
        bucket = self._buckets[number]
        factor = 1 / (self.divisor or self.group.size()) if self._hook is None else None
        bucket.take(position, self.parameters[index].grad if index in self._used else None, factor)
        bucket.pending -= 1
        while self._next < len(self._buckets) and self._buckets[self._next].pending == 0:
            self._start(self._next)
            self._next += 1

    def _start(self, number):
        bucket = self._buckets[number]
        if self._hook is None:
            bucket.future = future_of(self.group.engine.all_reduce([bucket.buffer], 0, True))
            return
        last = number == len(self._buckets) - 1
        parameters = [self.parameters[index] for index in bucket.indices]
        future = self._hook(self._state, GradBucket(number, last, bucket.buffer, bucket.views, parameters))
        if not hasattr(future, "wait"):
            raise RuntimeError(
                "callback must return a torch.futures.Future object, but got " + type(future).__name__
            )
        bucket.future = future

    def _finish(self):
        """The backward pass is over: wait for the averages and hand them out."""
        if self._next < len(self._buckets):
            return  # prepare() says so before the next pass; a partial backward may be followed by the rest
        if self.find_unused:
            used = zeros(len(self.parameters), dtype=int32, device=self.parameters[0].device)
            used[sorted(self._used)] = 1
            self.group.engine.all_reduce([used], 0)
            self._used_everywhere = used.tolist()
        for bucket in self._buckets:
            result = bucket.future.wait()
            if self._hook is not None:
                bucket.replace(result[0] if isinstance(result, (list, tuple)) else result)
            for position, index in enumerate(bucket.indices):
                if self._used_everywhere is None or not self.find_unused or self._used_everywhere[index]:
                    bucket.hand_out(position, self.parameters[index], self.as_views)
        self._expects = False

    def shadow(self):
        """Take part in a backward pass of the others, with gradients of zero."""
        for number, bucket in enumerate(self._buckets):
            bucket.clear()
            self._start(number)
        if self.find_unused:
            unused = zeros(len(self.parameters), dtype=int32, device=self.parameters[0].device)
            self.group.engine.all_reduce([unused], 0)
        for bucket in self._buckets:
            bucket.future.wait()

    def forget(self):
        """Take the hooks off the parameters."""
        for handle in self._handles:
            handle.remove()


def _tensors(value):
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _tensors(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)
    elif hasattr(value, "__dataclass_fields__"):
        for name in value.__dataclass_fields__:
            yield from _tensors(getattr(value, name))
