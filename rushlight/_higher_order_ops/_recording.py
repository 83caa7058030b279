"""Operators that take functions where a graph is made of a program: which modes know them, and gradients."""

from typing import Any

import rushlight as torch
from rushlight._functorch.functionalization import _modes_off
from rushlight._higher_order_ops._parts import recorder
from rushlight._higher_order_ops._regions import Regions
from rushlight._higher_order_ops.operator import HigherOrderOperator


class RegionOperator(HigherOrderOperator):
    """An operator of functions and tensors. Where it is recorded, the functions become graphs that take all
    tensors they use, and gradients are such an operator again.

    A call is ``operator(*head, *functions, *tensor lists)``; ``functions`` says where the functions are."""

    functions = slice(0, 1)

    def __call__(self, *args):
        mode = recorder()
        if mode is None:
            return super().__call__(*args)
        functions, lists = args[self.functions], [list(a) for a in args[self.functions.stop :]]
        called = [_bound(f, lists) for f in functions]
        lists = [[t for t in some if isinstance(t, torch.Tensor)] for some in lists]
        with mode.tracer.calling_functions() as watches:
            return self._recorded(mode, args, called, lists, watches)

    def _recorded(self, mode, args, called, lists, watches):
        with _modes_off(), torch.set_grad_enabled(watches):
            regions = Regions(mode)
            returned = [regions.trace(f, self.inputs(*lists), watches) for f in called]
        self.check(lists, returned)
        captured = list(regions.captured.values())
        lists[-1] += captured
        call = _Call(self, args[: self.functions.start], regions.modules(), lists)
        if not any(t.requires_grad for t in captured):
            call.sources = [_without_last(f, len(captured)) for f in called]
        tensors = call.tensors()
        if torch.is_grad_enabled() and any(t.requires_grad for t in tensors):
            return _Differentiable.apply(call, *tensors)
        return call.emit(lists)

    def _find(self, key):
        """The rule for a mode is that of the classes it is made of."""
        kinds = key.__mro__ if isinstance(key, type) else (key,)
        return next((found for kind in kinds if (found := super(RegionOperator, self)._find(kind))), None)

    def inputs(self, *lists):
        """Examples of what a function takes, given the lists of tensors."""
        return [t for some in lists for t in some]

    def check(self, lists, returned):
        """Refuse functions whose results do not fit."""

    def gradients(self, call, tensors, needed, grads):
        """The gradients of the tensors, of those that need none None."""
        raise NotImplementedError(
            f"{self._name} has no gradient in a graph: detach what it takes, or loop a fixed number of times "
            "with for or torch._higher_order_ops.scan, whose steps have gradients"
        )

    def dispatch(self, args):
        """What the modes in force make of a call."""
        mode = recorder()
        if mode is None or not mode.pre_dispatch:
            return super().__call__(*args)
        from rushlight.fx.experimental.proxy_tensor import disable_proxy_modes_tracing

        with disable_proxy_modes_tracing():  # that mode is on a stack of its own
            return self._find(type(mode))(mode, *args)


def _bound(function, lists):
    """A function of the tensors alone; numbers are parts of its graph."""
    places = [isinstance(t, torch.Tensor) for some in lists for t in some]
    if all(places):
        return function
    values = [t for some in lists for t in some]

    def run(*tensors):
        given = iter(tensors)
        filled = [next(given) if is_tensor else v for is_tensor, v in zip(places, values)]
        return function(*filled, *given)

    return run


def _without_last(function, count):
    return lambda *tensors: function(*tensors[: len(tensors) - count])


class _Call:
    """One use of an operator, with functions that are graphs."""

    def __init__(self, operator, head, functions, lists):
        self.operator, self.head, self.functions, self.lists = operator, head, functions, lists
        self.sources = functions  # to be differentiated: a recorded gradient has lost what it came from

    def tensors(self):
        return [t for some in self.lists for t in some]

    def emit(self, lists):
        args = (*self.head, *self.functions, *map(tuple, lists))
        return self.operator.dispatch(args)

    def split(self, tensors):
        """Tensors in the order of `tensors()` as the lists they come in."""
        rest = iter(tensors)
        return [[next(rest) for _ in some] for some in self.lists]


class _Differentiable(torch.autograd.Function):
    @staticmethod
    def forward(ctx, call, *tensors):
        ctx.call = call
        ctx.save_for_backward(*tensors)
        results = tuple(call.emit(call.split(tensors)))
        ctx.mark_non_differentiable(*(t for t in results if not _differentiable(t)))
        return results

    @staticmethod
    def backward(ctx, *grads):
        needed = [need and _differentiable(t) for need, t in zip(ctx.needs_input_grad[1:], ctx.saved_tensors)]
        return None, *ctx.call.operator.gradients(ctx.call, ctx.saved_tensors, needed, grads)


def _differentiable(tensor):
    return tensor.is_floating_point() or tensor.is_complex()


def gradient_of(function, needed):
    """A function of tensors and of the gradients of its results: the gradients of the tensors needed.

    Its graph can be differentiated again: nothing is detached in it but what the program detaches."""

    def run(*values):
        given, grads = values[: len(needed)], values[len(needed) :]
        recorded = recorder() is not None  # on tensors that nobody else has
        with torch.enable_grad():
            inputs = [t if recorded else t.detach() for t in given]
            for t, need in zip(inputs, needed):
                if need and not t.requires_grad:
                    t.requires_grad_()
            results = function(*inputs)
            pairs = [(r, g) for r, g in zip(results, grads) if r.requires_grad]
            wanted = [t for t, need in zip(inputs, needed) if need]
            found: Any = [None] * len(wanted)
            if pairs and wanted:
                outputs, seeds = zip(*pairs)
                found = torch.autograd.grad(outputs, wanted, seeds, allow_unused=True, create_graph=recorded)
        return tuple(torch.zeros_like(t) if g is None else g for t, g in zip(wanted, found))

    return run


def run_pure(operator, functions, mode, args):
    """An operator whose functions have their writes turned into values."""

    def pure(function):
        def run(*given):
            inner = type(mode)(mode.copies)
            with inner:
                inner.add_inputs(given)
                values = inner.values(function(*given))
            if any(inner._value(member) is not t for member, t in zip(inner.inputs, given)):
                raise RuntimeError(
                    f"{operator._name}: a function writes to what it is given or takes from around, which a "
                    "graph without writes cannot hold: let it return the new value"
                )
            return values

        return run

    kept = range(*functions.indices(len(args)))
    return operator(*(pure(a) if i in kept else mode.values(a) for i, a in enumerate(args)))
