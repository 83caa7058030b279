"""Activation checkpointing: forget what a part of a model saved, and compute it again for backward."""

import weakref
from contextlib import contextmanager, nullcontext
from typing import Any

import rushlight
from rushlight.amp.autocast_mode import _Regions
from rushlight.autograd.function import Function
from rushlight.autograd.graph import saved_tensors_hooks
from rushlight.utils._python_dispatch import TorchDispatchMode
from rushlight.utils._selective_checkpoint import (
    CheckpointPolicy,
    SelectiveCheckpointContext,
    create_selective_checkpoint_contexts,
    ignored_operators,
)
from rushlight.utils._selective_checkpoint import _CachedTorchDispatchMode as _CachedTorchDispatchMode
from rushlight.utils._selective_checkpoint import _CachingTorchDispatchMode as _CachingTorchDispatchMode

__all__ = [
    "CheckpointError",
    "CheckpointFunction",
    "CheckpointPolicy",
    "DefaultDeviceType",
    "GraphExecGroup",
    "SAC_IGNORED_OPS",
    "SelectiveCheckpointContext",
    "check_backward_validity",
    "checkpoint",
    "checkpoint_sequential",
    "create_selective_checkpoint_contexts",
    "detach_variable",
    "get_device_states",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
    "set_device_states",
]

__capture__ = "through"  # Note [Capture marks]

# What the contexts of these names ask for, over the argument.
_early_stop = _debug = None

# What computes nothing, and so is neither kept nor looked up by selective checkpoints.
SAC_IGNORED_OPS = ignored_operators()


class CheckpointError(RuntimeError):
    """The second computation did not save what the first one saved."""


class _Enough(Exception):
    """Everything that backward needs has been computed again."""


def noop_context_fn():
    return nullcontext(), nullcontext()


@contextmanager
def set_checkpoint_early_stop(enable):
    """Whether the second computation stops as soon as the last saved tensor is there."""
    global _early_stop
    before, _early_stop = _early_stop, enable
    try:
        yield
    finally:
        _early_stop = before


@contextmanager
def set_checkpoint_debug_enabled(enabled):
    """Whether checkpoints inside list their operators when the two computations differ."""
    global _debug
    before, _debug = _debug, enabled
    try:
        yield
    finally:
        _debug = before


class DefaultDeviceType:
    """The device whose random numbers a checkpoint without tensors on any device keeps."""

    _default_device_type: Any = None

    @staticmethod
    def set_device_type(device="cuda"):
        DefaultDeviceType._default_device_type = device

    @staticmethod
    def get_device_type():
        if DefaultDeviceType._default_device_type is None:
            present = rushlight.accelerator.current_accelerator(True)
            DefaultDeviceType._default_device_type = present.type if present is not None else "cuda"
        return DefaultDeviceType._default_device_type


def _devices_of(args):
    """The devices with random numbers of their own that these arguments, and lists of them, are on."""
    found = {}
    rushlight.utils._pytree.tree_map_only(
        rushlight.Tensor, lambda t: found.setdefault((t.device.type, t.get_device())), args
    )
    return [place for place in found if place[0] not in ("cpu", "meta")]


def get_device_states(*args):
    """The numbers of the devices that the arguments are on, and the states of their random streams. The CPU,
    which is always kept, is not among them."""
    places = _devices_of(args)
    modules = [rushlight.get_device_module(kind) for kind, _ in places]
    return [n for _, n in places], [m.get_rng_state(n) for m, (_, n) in zip(modules, places)]


def set_device_states(devices, states, *, device_type=None):
    """Put back what `get_device_states` returned."""
    if device_type == "meta" or not devices:
        return
    module = rushlight.get_device_module(device_type or DefaultDeviceType.get_device_type())
    for device, state in zip(devices, states):
        with module.device(device):
            module.set_rng_state(state)


def detach_variable(inputs):
    """The inputs as leaves of a graph of their own; what is not a tensor stays."""
    if not isinstance(inputs, tuple):
        raise RuntimeError(
            f"Only tuple of tensors is supported. Got Unsupported input type: {type(inputs).__name__}"
        )
    return tuple(
        x.detach().requires_grad_(x.requires_grad) if isinstance(x, rushlight.Tensor) else x for x in inputs
    )


def check_backward_validity(inputs):
    """Warn when no tensor among the inputs requires a gradient."""
    if not any(x.requires_grad for x in inputs if isinstance(x, rushlight.Tensor)):
        _warn_no_grad()


class GraphExecGroup:
    """Backward passes inside of one ``with`` block share what a checkpoint computes again: the first pass
    computes it, and it is kept until the block ends."""

    _current = None

    def __enter__(self):
        if GraphExecGroup._current is not None:
            raise RuntimeError("GraphExecGroup contexts cannot be nested")
        GraphExecGroup._current = self
        self._frames = []
        return self

    def __exit__(self, *exc):
        GraphExecGroup._current = None
        for frame in self._frames:
            frame.tensors.clear()

    @classmethod
    def _get_current_group(cls):
        return cls._current


def checkpoint(
    function,
    *args,
    use_reentrant=None,
    context_fn=noop_context_fn,
    determinism_check="default",
    debug=False,
    early_stop=True,
    **kwargs,
):
    """Call ``function(*args, **kwargs)`` without keeping its intermediate results.

    Args:
        use_reentrant: True for the older way, a backward pass within backward, which knows neither
            ``autograd.grad`` nor keyword arguments. False is recommended.
        context_fn: gives two contexts, for the first computation and for the second.
        determinism_check: "default" compares shape, dtype and device of saved tensors; "none" does not.
        debug: list the operators of both computations in the error about a difference.
        early_stop: stop the second computation when all saved tensors are there.
        preserve_rng_state: whether both computations draw the same random numbers; True by default.
    """
    preserve = kwargs.pop("preserve_rng_state", True)
    if use_reentrant is None:
        import warnings

        warnings.warn(
            "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. Starting in "
            "PyTorch 2.9, calling checkpoint without use_reentrant will raise an exception. "
            "use_reentrant=False is recommended, but if you need to preserve the current default behavior, "
            "you can pass use_reentrant=True. Refer to docs for more details on the differences between the "
            "two variants.",
            stacklevel=2,
        )
        use_reentrant = True
    if use_reentrant:
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        if context_fn is not noop_context_fn or debug is not False:
            raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
    elif determinism_check not in ("default", "none"):
        raise ValueError(
            f"determinism_check should be one of ['default', 'none'], but got {determinism_check}"
        )
    if rushlight.compiler.is_dynamo_compiling():
        plain = context_fn is noop_context_fn and preserve and not debug
        if not plain or (use_reentrant and not any(map(_has_gradient, args))):
            rushlight._dynamo.graph_break("a checkpoint that a graph does not keep")
        return _in_graph(function, args, kwargs)
    if use_reentrant:
        return CheckpointFunction.apply(function, preserve, *args)
    first, second = context_fn()
    frame = _Frame(function, args, kwargs, second, preserve, determinism_check, early_stop)
    logged: Any = nullcontext()
    if debug if _debug is None else _debug:
        frame.logs = _OperatorLog(), _OperatorLog()
        logged = frame.logs[0]
    with saved_tensors_hooks(frame.pack, frame.unpack), first, logged:
        result = function(*args, **kwargs)
    frame.whole = True
    return result


def _has_gradient(value):
    return isinstance(value, rushlight.Tensor) and value.requires_grad


def _in_graph(function, args, kwargs):
    """The call where `torch.compile` captures it: a backward pass computes again what this frame computes."""
    return function(*args, **kwargs)


class _OperatorLog(TorchDispatchMode):
    """Lists the operators that run."""

    def __init__(self):
        super().__init__()
        self.lines = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        shapes = [list(x.shape) for x in args if isinstance(x, rushlight.Tensor)]
        self.lines.append(f"{func} {shapes}")
        return result


class _Surroundings:
    """What a computation depends on besides its arguments: the regions of autocast and, where they are kept,
    the random streams of the CPU and of the devices that the arguments are on."""

    def __init__(self, args, keeps_random):
        self.autocast = _Regions()
        self.streams = (rushlight.get_rng_state(), *get_device_states(args)) if keeps_random else None

    @contextmanager
    def again(self):
        """As it was then, with gradients recorded; afterwards as it is now."""
        with rushlight.random.fork_rng(enabled=self.streams is not None), self.autocast:
            if self.streams is not None:
                cpu, devices, states = self.streams
                rushlight.set_rng_state(cpu)
                set_device_states(devices, states)
            with rushlight.enable_grad():
                yield


class _Place:
    """What a graph keeps in place of a saved tensor: the tensor's number and, until backward, its traits."""

    def __init__(self, number, tensor):
        self.number = number
        self.traits = _traits(tensor)


def _traits(tensor):
    return tensor.shape, tensor.dtype, tensor.device


class _Frame:
    """One call of a checkpointed function: how to make it again, and what came out of that."""

    def __init__(self, function, args, kwargs, context, preserve, check, early_stop):
        self.function, self.args, self.kwargs, self.context = function, args, kwargs, context
        self.check = check
        self.early_stop = early_stop if _early_stop is None else _early_stop
        self.surroundings = _Surroundings((args, kwargs), preserve)
        self.logs = None
        self.places = []  # weak: a tensor that no graph keeps any more is not needed
        self.whole = False  # whether the first run is over: a pass inside of it meets fewer places
        self.task = None  # the pass that had a tensor last
        self.tensors = {}  # by number, while a backward pass is going through them

    def pack(self, tensor):
        place = _Place(len(self.places), tensor)
        self.places.append(weakref.ref(place))
        return place

    def unpack(self, place):
        task = rushlight._C._current_graph_task_id()
        if place.number not in self.tensors:
            # Outside of a backward pass, and in each new one, everything may be computed again.
            if task == self.task != -1 and GraphExecGroup._current is None:
                raise CheckpointError(
                    "torch.utils.checkpoint: Unpack is being triggered for a tensor that was already "
                    "unpacked once. If you are calling ctx.saved_tensors in backward, make sure "
                    "to do so only once. "
                    "Otherwise please open an issue with details on your use case."
                )
            self._again()
        self.task = task
        group = GraphExecGroup._current
        if group is None:
            tensor = self.tensors.pop(place.number)
        else:
            group._frames.append(self)
            tensor = self.tensors[place.number]
        if self.check == "default" and _traits(tensor) != place.traits:
            raise CheckpointError(
                "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata "
                f"than during the forward pass.\ntensor at position {place.number}:\n"
                f"saved metadata: {place.traits}\nrecomputed metadata: {_traits(tensor)}{self._both_logs()}"
            )
        return tensor

    def _again(self):
        count, total = 0, len(self.places)

        def pack(tensor):
            nonlocal count
            if count == total:
                if not self.whole:
                    return tensor.detach()
                raise CheckpointError(
                    "torch.utils.checkpoint: trying to save more tensors during recomputation than during "
                    "the original forward pass."
                )
            if self.places[count]() is not None:
                self.tensors[count] = tensor.detach() if tensor.requires_grad else tensor
            count += 1
            if count == total and self.early_stop:
                raise _Enough
            return tensor.detach()

        logged = self.logs[1] if self.logs else nullcontext()
        with self.surroundings.again(), self.context, logged:
            try:
                with saved_tensors_hooks(pack, lambda tensor: tensor):
                    self.function(*self.args, **self.kwargs)
            except _Enough:
                pass
        if count != total:
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the original forward "
                f"and recomputation.\nNumber of tensors saved during forward: {total}\n"
                f"Number of tensors saved during recomputation: {count}.{self._both_logs()}"
            )

    def _both_logs(self):
        if self.logs is None:
            return (
                "\nTip: To see a more detailed error message, pass `debug=True` to "
                "`torch.utils.checkpoint.checkpoint(...)`, or wrap the code block with "
                "`torch.utils.checkpoint.set_checkpoint_debug_enabled(True)`."
            )
        first, second = ("\n".join(f"  {i}: {line}" for i, line in enumerate(log.lines)) for log in self.logs)
        return (
            "\nYou are seeing this error because you passed `debug=True` to checkpoint, or set it by "
            f"set_checkpoint_debug_enabled.\nOperators of the forward pass:\n{first}\n"
            f"Operators of the recomputation:\n{second}"
        )


class CheckpointFunction(Function):
    """The reentrant way: forward without recording, and in backward forward again and a pass through that."""

    @staticmethod
    def forward(ctx, function, preserve, *args):
        tensors = [a for a in args if isinstance(a, rushlight.Tensor)]
        check_backward_validity(tensors)
        ctx.function = function
        ctx.surroundings = _Surroundings(args, preserve)
        ctx.rest = [None if isinstance(a, rushlight.Tensor) else a for a in args]
        ctx.tensor_at = [i for i, a in enumerate(args) if isinstance(a, rushlight.Tensor)]
        ctx.save_for_backward(*tensors)
        with rushlight.no_grad():
            return function(*args)

    @staticmethod
    def backward(ctx, *grads):
        if not rushlight.autograd._is_checkpoint_valid():
            raise RuntimeError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an "
                "`inputs` parameter to .backward(). To resolve this error, you can either set "
                "use_reentrant=False, or call .backward() without passing the `inputs` argument."
            )
        args = list(ctx.rest)
        for i, tensor in zip(ctx.tensor_at, ctx.saved_tensors):
            args[i] = tensor.detach().requires_grad_(tensor.requires_grad)
        with ctx.surroundings.again():
            outputs = ctx.function(*args)
        outputs = (outputs,) if isinstance(outputs, rushlight.Tensor) else outputs
        pairs = [
            (o, g) for o, g in zip(outputs, grads) if isinstance(o, rushlight.Tensor) and o.requires_grad
        ]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        rushlight.autograd.backward([o for o, _ in pairs], [g for _, g in pairs])
        return (None, None, *(a.grad if isinstance(a, rushlight.Tensor) else None for a in args))


def _warn_no_grad():
    import warnings

    warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=4)


def checkpoint_sequential(functions, segments, input, use_reentrant=None, **kwargs):
    """Run modules one after the other, all but the last of the segments under ``checkpoint``."""
    functions = (
        list(functions.children()) if isinstance(functions, rushlight.nn.Sequential) else list(functions)
    )
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))

    def run(part):
        def forward(x):
            for f in part:
                x = f(x)
            return x

        return forward

    size = len(functions) // segments
    last = size * (segments - 1)
    for start in range(0, last, max(size, 1)):
        part = run(functions[start : start + size])
        input = checkpoint(part, input, use_reentrant=use_reentrant, preserve_rng_state=preserve)
    return run(functions[last:])(input)
