"""Averaging gradients while the backward pass still runs: the engine of DistributedDataParallel.

Source: Li et al., "PyTorch Distributed: Experiences on Accelerating Data Parallel Training", VLDB 2020,
section 3.2. Parameters are put into buckets in reverse order, about the order in which their gradients come.
A bucket whose gradients are all there is averaged on the group's thread; buckets start in the same order on
every rank.
"""

from typing import Any

from .. import Tensor, empty, int32, mul, zeros
from .._C import _engine_queue_callback

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


def make_buckets(parameters, limit, first_limit=_FIRST_BUCKET_BYTES):
    """Lists of indices of parameters, last ones first, each of one dtype and of about `limit` bytes."""
    buckets, open_buckets = [], {}
    for index in reversed(range(len(parameters))):
        parameter = parameters[index]
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
    parameters it will not reach; with `as_views` the gradients live in the buckets.
    """

    def __init__(self, parameters, names, group, bucket_bytes, find_unused, as_views):
        self.parameters, self.names, self.group = parameters, names, group
        self.find_unused, self.as_views = find_unused, as_views
        self._buckets = [_Bucket(indices, parameters) for indices in make_buckets(parameters, bucket_bytes)]
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
        bucket, parameter = self._buckets[number], self.parameters[index]
        view, gradient = bucket.views[position], parameter.grad
        if index not in self._used or gradient is None:
            view.zero_()
        elif self._hook is None:  # copied and divided in one pass
            mul(gradient.detach(), 1 / (self.divisor or self.group.size()), out=view)
        elif gradient.data_ptr() != view.data_ptr():
            view.copy_(gradient.detach())
        bucket.pending -= 1
        while self._next < len(self._buckets) and self._buckets[self._next].pending == 0:
            self._start(self._next)
            self._next += 1

    def _start(self, number):
        bucket = self._buckets[number]
        if self._hook is None:
            bucket.future = self.group.engine.all_reduce([bucket.buffer], 0, True)
            return
        last = number == len(self._buckets) - 1
        parameters = [self.parameters[index] for index in bucket.indices]
        bucket.future = self._hook(
            self._state, GradBucket(number, last, bucket.buffer, bucket.views, parameters)
        )

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
                result = result[0] if isinstance(result, (list, tuple)) else result
                if result.data_ptr() != bucket.buffer.data_ptr():
                    bucket.buffer.copy_(result)
            for index, view in zip(bucket.indices, bucket.views):
                self._hand_out(index, view)
        self._expects = False

    def _hand_out(self, index, view):
        parameter = self.parameters[index]
        if self._used_everywhere is not None and self.find_unused and not self._used_everywhere[index]:
            return  # no rank used it: its gradient stays as it was
        if self.as_views:
            if parameter.grad is None or parameter.grad.data_ptr() != view.data_ptr():
                parameter.grad = view.detach()
        elif parameter.grad is None:
            parameter.grad = view.detach().clone()
        else:
            parameter.grad.detach().copy_(view)

    def shadow(self):
        """Take part in a backward pass of the others, with gradients of zero."""
        for number, bucket in enumerate(self._buckets):
            bucket.buffer.zero_()
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
