"""Activation checkpointing: forget what a part of a model saved, and compute it again for backward."""

import weakref
from contextlib import contextmanager, nullcontext

import rushlight
from rushlight.autograd.function import Function
from rushlight.autograd.graph import saved_tensors_hooks

__all__ = ["CheckpointError", "CheckpointFunction", "checkpoint", "checkpoint_sequential", "noop_context_fn",
           "set_checkpoint_early_stop"]  # fmt: skip

_early_stop = None  # what set_checkpoint_early_stop asks for, over the argument


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
            "you can pass use_reentrant=True.",
            stacklevel=2,
        )
        use_reentrant = True
    if use_reentrant:
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        if context_fn is not noop_context_fn or debug is not False:
            raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
        return CheckpointFunction.apply(function, preserve, *args)

    first, second = context_fn()
    frame = _Frame(function, args, kwargs, second, preserve, determinism_check, early_stop)
    with saved_tensors_hooks(frame.pack, frame.unpack), first:
        return function(*args, **kwargs)


def _fork_rng(state):
    """The random stream from a state on, and afterwards as it was; nothing without a state."""
    if state is None:
        return nullcontext()

    @contextmanager
    def fork():
        with rushlight.random.fork_rng():
            rushlight.set_rng_state(state)
            yield

    return fork()


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
        self.state = rushlight.get_rng_state() if preserve else None
        self.places = []  # weak: a tensor that no graph keeps any more is not needed
        self.tensors = {}  # by number, while a backward pass is going through them

    def pack(self, tensor):
        place = _Place(len(self.places), tensor)
        self.places.append(weakref.ref(place))
        return place

    def unpack(self, place):
        if place.number not in self.tensors:
            self._again()
        tensor = self.tensors.pop(place.number)
        if self.check == "default" and _traits(tensor) != place.traits:
            raise CheckpointError(
                "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata "
                f"than during the forward pass.\ntensor at position {place.number}:\n"
                f"saved metadata: {place.traits}\nrecomputed metadata: {_traits(tensor)}"
            )
        return tensor

    def _again(self):
        count, total = 0, len(self.places)

        def pack(tensor):
            nonlocal count
            if count < total and self.places[count]() is not None:
                self.tensors[count] = tensor.detach()
            count += 1
            if count == total and self.early_stop:
                raise _Enough
            return tensor.detach()

        with _fork_rng(self.state), rushlight.enable_grad(), self.context:
            try:
                with saved_tensors_hooks(pack, lambda tensor: tensor):
                    self.function(*self.args, **self.kwargs)
            except _Enough:
                pass
        if count != total:
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the original forward "
                f"and recomputation.\nNumber of tensors saved during forward: {total}\n"
                f"Number of tensors saved during recomputation: {count}."
            )


class CheckpointFunction(Function):
    """The reentrant way: forward without recording, and in backward forward again and a pass through that."""

    @staticmethod
    def forward(ctx, function, preserve, *args):
        tensors = [a for a in args if isinstance(a, rushlight.Tensor)]
        if not any(t.requires_grad for t in tensors):
            _warn_no_grad()
        ctx.function = function
        ctx.state = rushlight.get_rng_state() if preserve else None
        ctx.rest = [None if isinstance(a, rushlight.Tensor) else a for a in args]
        ctx.tensor_at = [i for i, a in enumerate(args) if isinstance(a, rushlight.Tensor)]
        ctx.save_for_backward(*tensors)
        with rushlight.no_grad():
            return function(*args)

    @staticmethod
    def backward(ctx, *grads):
        args = list(ctx.rest)
        for i, tensor in zip(ctx.tensor_at, ctx.saved_tensors):
            args[i] = tensor.detach().requires_grad_(tensor.requires_grad)
        with _fork_rng(ctx.state), rushlight.enable_grad():
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
