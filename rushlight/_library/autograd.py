"""Derivatives of custom operators: an ``autograd.Function`` around the call below autograd."""

import rushlight as torch
from rushlight import _C

__all__ = ["AutogradKernel", "watched"]

__capture__ = "through"  # Note [Capture marks]


def _flatten(values):
    """Tensors of the arguments, one level of lists deep, and how to put others in their place."""
    leaves, spec = [], []
    for value in values:
        nested = isinstance(value, (list, tuple))
        spec.append(len(value) if nested else -1)
        leaves.extend(value if nested else [value])
    return leaves, spec


def _unflatten(leaves, spec):
    values, at = [], 0
    for n in spec:
        values.append(list(leaves[at : at + n]) if n >= 0 else leaves[at])
        at += max(n, 1) if n < 0 else n
    return values


def _flat_gradients(grads, spec):
    """One gradient per leaf, out of one per argument; `autograd.Function` counts those without lists."""
    if max(spec, default=-1) < 0:
        return grads
    if len(grads) != len(spec) or not all(map(_nests_as, grads, spec)):
        raise RuntimeError(
            "Expected the return from backward to be of the same structure as the inputs. Got: "
            f"{_structure(grads)} (return from backward), {_structure(map(_example, spec))} (inputs)"
        )
    flat = []
    for grad, n in zip(grads, spec):
        flat.extend([grad] if n < 0 else [None] * n if grad is None else grad)
    return flat


def _nests_as(grad, n):
    return n < 0 or grad is None or (isinstance(grad, (list, tuple)) and len(grad) == n)


def _example(n):
    return None if n < 0 else [None] * n


def _structure(grads):
    return f"({', '.join(f'[{len(g)} items]' if isinstance(g, (list, tuple)) else '*' for g in grads)})"


def _unregistered(name):
    def backward(ctx, *grads):
        raise RuntimeError(
            f"Trying to backward through {name} but no autograd formula was registered. Please use "
            "register_autograd to add one."
        )

    return backward


class _Call:
    """One recorded call: how its arguments nest, and its results."""

    __slots__ = ("kwargs", "results", "spec")

    def __init__(self, spec, kwargs):
        self.spec, self.kwargs = spec, kwargs
        self.results = None  # how they nest where there are several, "list" for one list, None for one value

    def flat(self, output):
        """The results as autograd takes them."""
        if isinstance(output, list):
            self.results = "list"
            return tuple(output)
        if not isinstance(output, tuple):
            return output
        leaves, self.results = _flatten(output)
        return tuple(leaves)

    def nested(self, values):
        """Results, or gradients of them, as the operator returns them: a tuple of what it returns."""
        return ([*values],) if self.results == "list" else tuple(_unflatten(values, self.results))

    def output(self, flat):
        if self.results is None:
            return flat
        return list(flat) if self.results == "list" else self.nested(flat)


_STEPS = ("forward", "setup_context", "backward")


def _step(overload, derivative, setup_context):
    """The ``autograd.Function`` of an operator."""
    keyword_only = [a.name for a in overload._schema.arguments if a.kwarg_only]

    def record(ctx, inputs, kwargs, output):
        if setup_context is None:
            return
        if keyword_only:
            chosen = {
                a.name: kwargs.get(a.name, a.default_value)
                for a in overload._schema.arguments
                if a.kwarg_only
            }
            setup_context(ctx=ctx, inputs=inputs, keyword_only_inputs=chosen, output=output)
        else:
            setup_context(ctx=ctx, inputs=inputs, output=output)

    class Generated:
        @staticmethod
        def forward(call, *leaves):
            with _C._AutoDispatchBelowAutograd():
                return call.flat(overload(*_unflatten(leaves, call.spec), **call.kwargs))

        @staticmethod
        def setup_context(ctx, inputs, output):
            call, *leaves = inputs
            ctx._rl_call = call
            given = _with_defaults(overload, _unflatten(leaves, call.spec))
            record(ctx, given, call.kwargs, call.output(output))

        @staticmethod
        def backward(ctx, *grads):
            call = ctx._rl_call
            found = derivative(ctx, *(grads if call.results is None else call.nested(grads)))
            missing = len(_with_defaults(overload, call.spec)) - len(call.spec)
            found = found if isinstance(found, tuple) else (found,)
            if missing and len(found) == len(call.spec) + missing:
                found = found[: len(call.spec)]
            return (None, *_flat_gradients(found, call.spec))

    # The class is made under its final name, for its nodes are called after it.
    function_name = f"GeneratedBackwardFor_{overload.namespace}_{overload._opname}_{overload._overloadname}"
    return type(torch.autograd.Function)(
        function_name, (torch.autograd.Function,), {k: vars(Generated)[k] for k in _STEPS}
    )


class AutogradKernel:
    """Runs an operator where autograd records it."""

    __slots__ = ("derivative", "overload", "setup_context", "step")

    def __init__(self, overload, backward=None, setup_context=None):
        self.overload, self.setup_context = overload, setup_context
        self.derivative = backward or _unregistered(overload._name)
        self.step = _step(overload, self.derivative, setup_context)

    def __call__(self, *args, **kwargs):
        if self.overload._schema.is_mutable:
            with _C._AutoDispatchBelowAutograd():
                return self.overload(*args, **kwargs)
        leaves, spec = _flatten(args)
        call = _Call(spec, kwargs)
        return call.output(self.step.apply(call, *leaves))


def _with_defaults(overload, args):
    """Positional arguments with those left out at the end filled in."""
    positional = [a for a in overload._schema.arguments if not a.kwarg_only]
    return (*args, *(a.default_value for a in positional[len(args) :]))


def _warn(name):
    import warnings

    warnings.warn(
        f"{name}: an autograd kernel was not registered to the Autograd key(s) but we are trying to backprop "
        "through it. This may lead to silently incorrect behavior. If your operator is differentiable, "
        "please register its derivative (torch.library.register_autograd, or Library.impl for "
        "the key Autograd or "
        "CompositeImplicitAutograd). If it is not, or to squash this warning, please register "
        "torch.library.fallthrough_kernel for the key Autograd.",
        stacklevel=2,
    )


class WarnNotImplemented(torch.autograd.Function):
    """A result without history gets one that leads nowhere, and says so."""

    @staticmethod
    def forward(ctx, name, result, *tensors):
        ctx._rl_name, ctx._rl_count = name, 2 + len(tensors)
        return result

    @staticmethod
    def backward(ctx, grad):
        _warn(ctx._rl_name)
        return (None,) * ctx._rl_count


def watched(name, args, kwargs, results):
    """The results of an operator without a derivative: a gradient that comes to them brings a warning."""
    given, _ = _flatten([*args, *kwargs.values()])
    given = [t for t in given if isinstance(t, torch.Tensor)]
    known = {id(t) for t in given}

    def watch(t):
        if not isinstance(t, torch.Tensor) or not (t.is_floating_point() or t.is_complex()):
            return t
        if t.requires_grad:
            base = t._base
            for seen in (t,) if base is None or not base.requires_grad else (t, base):
                seen.register_hook(lambda grad: _warn(name))
            return t
        return t if id(t) in known else WarnNotImplemented.apply(name, t, *given)

    if isinstance(results, (tuple, list)):
        return type(results)(
            [watch(t) for t in r] if isinstance(r, (tuple, list)) else watch(r) for r in results
        )
    return watch(results)
