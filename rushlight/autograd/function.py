"""Functions with a backward pass of one's own."""

from functools import wraps

import rushlight
from rushlight import _C
from rushlight._errors.advice import advised

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = [
    "BackwardCFunction",
    "Function",
    "FunctionCtx",
    "FunctionMeta",
    "InplaceFunction",  # noqa: F822
    "NestedIOFunction",  # noqa: F822
    "once_differentiable",
]

__capture__ = "through"  # Note [Capture marks]


class FunctionCtx:
    """What ``forward`` notes for ``backward``. The engine reads the attributes after ``forward`` has
    returned."""

    def save_for_backward(self, *tensors):
        """Keep tensors for ``backward``, where they are ``ctx.saved_tensors``; each may be None.

        Args:
            tensors (Tensor or None): what `backward` finds in `ctx.saved_tensors`.

        Example:
            >>> class Square(torch.autograd.Function):
            ...     @staticmethod
            ...     def forward(ctx, x):
            ...         ctx.save_for_backward(x)
            ...         return x * x
            ...     @staticmethod
            ...     def backward(ctx, grad):
            ...         (x,) = ctx.saved_tensors
            ...         return 2 * x * grad
            >>> x = torch.tensor([3.0], requires_grad=True)
            >>> Square.apply(x).backward()
            >>> x.grad
            tensor([6.])
        """
        self.to_save = tensors

    def save_for_forward(self, *tensors):
        """Keep tensors for ``jvp``, where they are ``ctx.saved_tensors``."""
        for tensor in tensors:
            if not (isinstance(tensor, rushlight.Tensor) or tensor is None):
                raise TypeError(
                    "save_for_forward expects all arguments to be tensors; you should save non-tensors as "
                    "attributes on ctx."
                )
        self.saved_for_forward = tensors

    def mark_dirty(self, *args):
        """Say which inputs ``forward`` changed in place; they must be returned too."""
        self.dirty_tensors = args

    def mark_non_differentiable(self, *args):
        """Say which outputs have no gradient; ``backward`` receives zeros for them."""
        self.non_differentiable = args

    def set_materialize_grads(self, value):
        """Whether ``backward`` receives zeros (the default) or None for outputs without gradient."""
        self.materialize_grads = value


class BackwardCFunction(_C._FunctionBase, FunctionCtx):
    """The node that a Function leaves in the graph; also the ``ctx`` of its methods."""

    def apply(self, *args):
        cls = self._forward_cls
        backward, vjp = cls.backward, cls.vjp
        if vjp is not Function.vjp:
            if backward is not Function.backward:
                raise RuntimeError(
                    "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You "
                    "should only implement one of them."
                )
            backward = vjp
        return backward(self, list(args)) if cls.boxed_grads_call else backward(self, *args)

    def apply_jvp(self, *args):
        return self._forward_cls.jvp(self, *args)


def _take_saved_tensors(ctx):
    """The saved tensors, which from now on only the caller keeps."""
    tensors = _C._FunctionBase.saved_tensors.__get__(ctx)
    ctx._release_saved()
    return tensors


class FunctionMeta(type):
    """Gives each Function a node class named after it."""

    def __init__(cls, name, bases, attrs):
        super().__init__(name, bases, attrs)
        members = {"_forward_cls": cls}
        if getattr(cls, "clear_saved_tensors_on_access", False):
            members["saved_tensors"] = property(_take_saved_tensors)
        cls._backward_cls = type(name + "Backward", (BackwardCFunction,), members)


class Function(_C._FunctionBase, FunctionCtx, metaclass=FunctionMeta):
    """Base class of operations with their own derivative.

    A subclass gives ``forward(ctx, *args)``, or ``forward(*args)`` with ``setup_context(ctx, inputs,
    output)``, and ``backward(ctx, *grad_outputs)``; it is called as ``MyFunction.apply(*args)``.

    Example:
        >>> class Double(torch.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         return x * 2
        ...     @staticmethod
        ...     def backward(ctx, grad):
        ...         return grad * 2
        >>> x = torch.ones(1, requires_grad=True)
        >>> Double.apply(x).backward()
        >>> x.grad
        tensor([2.])
    """

    generate_vmap_rule = False
    # Whether backward takes one list of gradients, which it may empty to free them early.
    boxed_grads_call = False
    # Whether ctx.saved_tensors may be read once, after which the node keeps nothing. Set in the class's body.
    clear_saved_tensors_on_access = False

    def __init__(self, *args, **kwargs):
        import warnings

        warnings.warn(
            f"{type(self)} should not be instantiated. Methods on autograd functions are all static, so you "
            "should invoke them on the class itself. Instantiating an autograd function will raise an error "
            "in a future version of PyTorch.",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args, **kwargs):
        raise advised(
            RuntimeError(
                "Legacy autograd function with non-static forward method is deprecated. Please use new-style "
                "autograd function with static forward method. (Example: "
                "https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)"
            )
        )

    @staticmethod
    def forward(*args, **kwargs):
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx, inputs, output):
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx, *grad_outputs):
        """backward.

        Args:
            ctx: what `forward` saved.
            grad_outputs (Tensor): a gradient for each result of `forward`.

        Example:
            >>> class Negate(torch.autograd.Function):
            ...     @staticmethod
            ...     def forward(ctx, x):
            ...         return -x
            ...     @staticmethod
            ...     def backward(ctx, grad):
            ...         return -grad
            >>> x = torch.ones(1, requires_grad=True)
            >>> Negate.apply(x).backward()
            >>> x.grad
            tensor([-1.])
        """
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to "
            "use it with backward mode AD."
        )

    # The same function under two names; BackwardCFunction looks which of them a subclass replaced.
    vjp = backward

    @staticmethod
    def jvp(ctx, *grad_inputs):
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )

    @staticmethod
    def vmap(info, in_dims, *args):
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap staticmethod or set "
            "generate_vmap_rule=True."
        )

    @classmethod
    def apply(cls, *args, **kwargs):
        """Call the function and record it."""
        if kwargs:
            args = _bind(cls, args, kwargs)
        elif cls.setup_context is not Function.setup_context:
            args = _with_defaults(cls, args)
        if _C._functorch._innermost_transform() is not None:
            from rushlight._functorch.autograd_function import custom_function_call

            return custom_function_call(cls, args)
        return super().apply(*args)

    @classmethod
    def _apply_here(cls, *args):
        """``apply`` at the present level of function transforms."""
        return super().apply(*args)

    if TYPE_CHECKING:  # subclasses name the inputs and gradients that they take
        backward: Callable[..., Any]  # type: ignore[no-redef]
        forward: Callable[..., Any]  # type: ignore[no-redef]
        jvp: Callable[..., Any]  # type: ignore[no-redef]
        setup_context: Callable[..., Any]  # type: ignore[no-redef]
        vjp: Callable[..., Any]  # type: ignore[no-redef]
        vmap: Callable[..., Any]  # type: ignore[no-redef]


class _SingleLevelFunction(Function):
    """A Function that the innermost function transform records as it stands: its ``forward`` itself says what
    is computed further out. Only inside of `enable_single_level_autograd_function`."""

    @classmethod
    def apply(cls, *args, **kwargs):
        from rushlight._extension.functorch_names import get_single_level_autograd_function_allowed

        if _C._functorch._innermost_transform() is None:
            return super().apply(*args, **kwargs)
        if not get_single_level_autograd_function_allowed():
            raise RuntimeError(
                f"{cls.__name__} records at one level of function transforms alone: call it inside of "
                "torch._functorch.utils.enable_single_level_autograd_function(), or make it a Function"
            )
        return cls._apply_here(*(_bind(cls, args, kwargs) if kwargs else args))


def _bind(cls, args, kwargs):
    """Keyword arguments of ``apply`` in the order of ``forward``'s parameters."""
    import inspect

    given = args if _has_setup_context(cls) else (None, *args)
    bound = inspect.signature(cls.forward).bind(*given, **kwargs)
    bound.apply_defaults()
    if any(isinstance(value, rushlight.Tensor) for value in bound.kwargs.values()):
        raise NotImplementedError(
            f"{cls.__name__}.apply: kwarg-only Tensor args of forward have no gradient; take them by position"
        )
    return bound.args if _has_setup_context(cls) else bound.args[1:]


def _with_defaults(cls, args):
    """The arguments with the defaults of ``forward``, which ``setup_context`` wants to see."""
    forward = cls.forward
    function = getattr(forward, "__func__", forward)
    defaults = getattr(function, "__defaults__", None)
    if not defaults:
        return args
    missing = function.__code__.co_argcount - (function is not forward) - len(args)
    return args + defaults[-missing:] if 0 < missing <= len(defaults) else args


def _has_setup_context(cls):
    return cls.setup_context is not Function.setup_context


def once_differentiable(fn):
    """Decorates a ``backward`` that cannot itself be differentiated: doing so gives a clear error."""

    @wraps(fn)
    def backward(ctx, *args):
        with rushlight.no_grad():
            outputs = fn(ctx, *args)
        # Recording is on only under create_graph; the error may wait until the result is differentiated.
        if not rushlight.is_grad_enabled():
            return outputs
        if not any(isinstance(a, rushlight.Tensor) and a.requires_grad for a in args):
            return outputs
        single = not isinstance(outputs, tuple)
        results = tuple(_DifferentiatedTwice.apply(o, *args) if _inexact(o) else o for o in _tuple(outputs))
        return results[0] if single else results

    return backward


def _tuple(value):
    return value if isinstance(value, tuple) else (value,)


def _inexact(value):
    return isinstance(value, rushlight.Tensor) and (value.is_floating_point() or value.is_complex())


class _DifferentiatedTwice(Function):
    """A result of such a backward; its node is called Error, as PyTorch's."""

    @staticmethod
    def forward(ctx, output, *inputs):
        return output.detach()

    @staticmethod
    def backward(ctx, *grads):
        raise RuntimeError(
            "trying to differentiate twice a function that was marked with @once_differentiable"
        )


_DifferentiatedTwice._backward_cls.__name__ = "Error"

_ContextMethodMixin = FunctionCtx  # its former name


def __getattr__(name):
    from rushlight.autograd import _nested_functions

    if name.startswith("__") or not hasattr(_nested_functions, name):
        raise AttributeError(f"module 'torch.autograd.function' has no attribute {name!r}")
    return getattr(_nested_functions, name)
