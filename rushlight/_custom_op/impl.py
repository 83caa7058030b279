"""Custom operators of the API before `torch.library.custom_op`: declared, then given kernels and gradients.

What saves for the backward pass and what computes gradients are two functions; the latter returns a dict with
a gradient for each argument that is a tensor."""

from __future__ import annotations

import collections
import inspect

import rushlight as torch
from rushlight import _C
from rushlight._library.autograd import AutogradKernel
from rushlight._library.infer_schema import infer_schema
from rushlight._library.utils import (
    has_kernel,
    has_tensor_arg,
    is_functional_schema,
    is_tensor_like_type,
    is_tensorlist_like_type,
    lookup_op,
    parse_namespace,
)
from rushlight._operators.schema import parse_schema
from rushlight.library import get_ctx

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["CustomOp", "custom_op", "get_ctx", "get_op", "global_registry", "infer_schema"]

RESERVED_NS = {"prim", "prims", "aten", "at", "torch", "pytorch"}
SUPPORTED_DEVICE_TYPE_TO_KEY = {"cpu": "CPU", "cuda": "CUDA"}
global_registry: dict = {}  # name -> CustomOp
_FROM_HERE = object()


def get_op(qualname):
    """The operator of this name, ``"ns::name"``."""
    try:
        return lookup_op(qualname)
    except AttributeError:
        raise RuntimeError(
            f"The operator `{qualname}` was not registered. Please make sure that you have imported the "
            "module where it is defined."
        ) from None


class CustomOp:
    """One operator and what was registered for it."""

    def __init__(self, lib, qualname, overload, known=None, _from_here=None):
        if _from_here is not _FROM_HERE:
            raise RuntimeError("The CustomOp constructor is private: declare an operator with @custom_op")
        self._lib, self._qualname, self._overload = lib, qualname, overload
        self._names = [a.name for a in overload._schema.arguments]
        make: Any = collections.namedtuple
        self._inputs = make(f"{overload._opname}_args", self._names)
        self._kernels: dict = {}
        self._save: Any = None
        self._backward: Any = None
        self._differentiable = None
        global_registry[qualname] = self
        if known is None:
            self._refuse_until_registered()

    def __repr__(self):
        return f'<CustomOp(op="{self._qualname}")>'

    def __call__(self, *args, **kwargs):
        return self._overload(*args, **kwargs)

    def _destroy(self):
        self._lib._destroy()
        global_registry.pop(self._qualname, None)

    def _refuse_until_registered(self):
        """A new operator has no kernel and no derivative; calls say which is missing."""
        name, schema = self._qualname, self._overload._schema

        def no_kernel(*args, **kwargs):
            if not has_tensor_arg(schema):
                raise NotImplementedError(
                    f"{name}: there were no Tensor inputs, whose device would say which kernel runs. Please "
                    "register one with impl."
                )
            found = next((t.device.type for t in _tensors([args, kwargs])), "cpu")
            if found == "meta":
                raise NotImplementedError(
                    f"{name}: attempted to run this operator with Meta tensors, but there was no fake impl "
                    "or Meta kernel registered. Please use torch.library.register_fake to add one."
                )
            raise NotImplementedError(
                f"{name}: there was no {found} impl registered. Please register one via the "
                "torch.library.impl API"
            )

        self._lib.impl(schema.name.partition("::")[2], no_kernel, "CompositeExplicitAutograd")
        _C._set_operator_autograd(self._index, self._without_derivative)

    @property
    def _index(self):
        return self._overload._entry.index

    def _without_derivative(self, *args, **kwargs):
        if torch.is_grad_enabled() and any(t.requires_grad for t in _tensors([args, kwargs])):
            raise RuntimeError(
                f"Autograd has not been implemented for operator {self._qualname}: register its derivative "
                "with impl_save_for_backward and impl_backward, or torch.library.register_autograd."
            )
        with _C._AutoDispatchBelowAutograd():
            return self._overload(*args, **kwargs)

    def impl(self, device_types=("cpu", "cuda"), _stacklevel=2):
        """A kernel for device types; a decorator."""
        kinds = [device_types] if isinstance(device_types, str) else list(device_types)
        for kind in kinds:
            if kind not in SUPPORTED_DEVICE_TYPE_TO_KEY:
                raise ValueError(
                    f"CustomOp.impl(device_types=[{kind}, ...]): we only support device_type in "
                    f"{SUPPORTED_DEVICE_TYPE_TO_KEY.keys()}."
                )

        def register(function):
            for kind in kinds:
                self._refuse_second(kind)
                self._kernels[kind] = function
                key = SUPPORTED_DEVICE_TYPE_TO_KEY[kind]
                self._lib.impl(self._qualname.partition("::")[2], function, key)
            return function

        return register

    def _refuse_second(self, kind):
        key = SUPPORTED_DEVICE_TYPE_TO_KEY[kind]
        given = [key, "CompositeImplicitAutograd", "CompositeExplicitAutograd"]
        own = any(has_kernel(self._overload, k) for k in (given[:2] if self._is_own else given))
        if kind in self._kernels or own:
            raise RuntimeError(
                f"impl(..., device_types={kind}): the operator {self._qualname} already has an "
                "implementation for this device type."
            )

    @property
    def _is_own(self):
        return (self._overload._opname, self._overload._entry.overload) in self._lib._op_defs

    def impl_abstract(self, _stacklevel=2):
        """The function that gives shapes and dtypes; a decorator."""
        return lambda function: torch.library.register_fake(self._qualname, function, lib=self._lib)

    def impl_save_for_backward(self, _stacklevel=2):
        """``save(inputs, output)``: what the backward pass needs, tensors and other values; a decorator."""

        def register(function):
            self._check_backward()
            self._save = function
            self._install()
            return function

        return register

    def impl_backward(self, output_differentiability=None, _stacklevel=2):
        """``backward(ctx, saved, *grads)``: a gradient for each tensor argument, by its name; a decorator."""
        if output_differentiability is not None:
            self._check_differentiability(output_differentiability)

        def register(function):
            self._check_backward()
            self._backward, self._differentiable = function, output_differentiability
            self._install()
            return function

        return register

    def _check_differentiability(self, given):
        returns = self._overload._schema.returns
        if (
            not isinstance(given, list)
            or len(given) != len(returns)
            or not all(type(g) is bool for g in given)
        ):
            raise RuntimeError(
                f"impl_backward(output_differentiability): expected output_differentiability to be a list of "
                f"{len(returns)} bools, one for each return of {self._qualname}, got {given}"
            )

    def _check_backward(self):
        schema = self._overload._schema
        reason = None
        if schema.is_mutable:
            reason = "non-functional operator"
        elif any(r.alias_info is not None for r in schema.returns):
            reason = "operator that returns views"
        elif not schema.returns:
            reason = "operator with no returns"
        elif not self._is_own:
            keys = ("CompositeImplicitAutograd", "Autograd", "AutogradCPU", "AutogradCUDA")
            found = [k for k in keys if has_kernel(self._overload, k)]
            reason = f"operator that already has a kernel for {found[0]}" if found else None
        if reason is not None:
            raise RuntimeError(f"Cannot register a backward formula for {self._qualname}: it is an {reason}")

    def _install(self):
        if self._save is None:
            message = (
                f"While computing gradients of {self._qualname}: we were unable to find a "
                "'save_for_backward' function; register one with impl_save_for_backward"
            )

            def incomplete(*args, **kwargs):
                raise RuntimeError(message)

            return _C._set_operator_autograd(self._index, incomplete)
        if self._backward is None:
            return None
        kernel = AutogradKernel(self._overload, self._gradients, self._remember)
        return _C._set_operator_autograd(self._index, kernel)

    def _remember(self, ctx, inputs, output, keyword_only_inputs=None):
        given = dict(zip(self._names, inputs)) | (keyword_only_inputs or {})
        outputs = output if isinstance(output, tuple) else (output,)
        if self._differentiable is not None:
            fixed = [o for o, d in zip(outputs, self._differentiable, strict=True) if not d]
            self._check_outputs(outputs, self._differentiable)
            ctx.mark_non_differentiable(*_tensors(fixed))
        saved = self._save(self._inputs(**given), output)
        leaves, ctx._rl_saved = torch.utils._pytree.tree_flatten(saved)
        ctx.save_for_backward(*[leaf for leaf in leaves if isinstance(leaf, torch.Tensor)])
        ctx._rl_plain = [None if isinstance(leaf, torch.Tensor) else (leaf,) for leaf in leaves]
        ctx._rl_given = given

    def _check_outputs(self, outputs, differentiable):
        for i, (output, wanted) in enumerate(zip(outputs, differentiable, strict=True)):
            items = output if isinstance(output, (list, tuple)) else [output]
            if wanted and not all(isinstance(item, torch.Tensor) for item in items):
                raise RuntimeError(
                    f"With output_differentiability={differentiable}: output {i} of {self._qualname} "
                    f"is marked as differentiable but is not a Tensor (or a list of them), got {type(output)}"
                )

    def _gradients(self, ctx, *grads):
        tensors = iter(ctx.saved_tensors)
        leaves = [next(tensors) if plain is None else plain[0] for plain in ctx._rl_plain]
        saved = torch.utils._pytree.tree_unflatten(leaves, ctx._rl_saved)
        found = self._backward(ctx, saved, *grads)
        return self._in_order(found, ctx._rl_given)

    def _in_order(self, found, given):
        """The gradients of a dict as autograd takes them; what is wrong with it is told."""
        schema = self._overload._schema
        start = f"In the backward function defined for {self._qualname} at impl_backward: expected"
        if not isinstance(found, dict):
            raise RuntimeError(
                f"{start} the output of the backward function to be a dict but got {type(found)}"
            )
        wanted = {
            a.name for a in schema.arguments if is_tensor_like_type(a.type) or is_tensorlist_like_type(a.type)
        }
        if more := set(found) - wanted:
            if more <= set(self._names):
                raise RuntimeError(
                    f"{start} gradients of tensors alone, but {more} are of non-Tensor-like types"
                )
            raise RuntimeError(f"{start} the returned dict to have keys {wanted} but got {set(found)}")
        if wanted - set(found):
            raise RuntimeError(f"{start} the returned dict to have keys {wanted} but got {set(found)}")
        for name, grad in found.items():
            self._check_gradient(start, name, grad, given[name])
        return tuple(found.get(a.name) for a in schema.arguments if not a.kwarg_only)

    @staticmethod
    def _check_gradient(start, name, grad, given):
        if not isinstance(given, (list, tuple)):
            if grad is not None and not isinstance(grad, torch.Tensor):
                raise RuntimeError(
                    f"{start} the gradient of {name} to be either None or a Tensor, got {type(grad)}"
                )
            return
        if not isinstance(grad, (list, tuple)):
            raise RuntimeError(
                f"{start} {name}, a list of tensors, to have a list of gradients, got {type(grad)}"
            )
        if len(grad) != len(given):
            raise RuntimeError(f"{start} {len(given)} gradients but got {len(grad)} for {name}")
        if not all(g is None or isinstance(g, torch.Tensor) for g in grad):
            raise RuntimeError(f"{start} the gradients of {name} to be None or Tensor, each of them")


def _tensors(values):
    return [leaf for leaf in torch.utils._pytree.tree_leaves(values) if isinstance(leaf, torch.Tensor)]


def declare(qualname, schema):
    """A new operator without a kernel."""
    space, name = parse_namespace(qualname)
    if space in RESERVED_NS:
        raise ValueError(f"Cannot use namespace {space}: it is a reserved namespace, choose another")
    if "." in name:
        raise ValueError(
            f"The torch.library.custom_op APIs do not handle overloads, got operator name {name}"
        )
    try:
        parsed = parse_schema(f"{name}{schema}")
    except (RuntimeError, ValueError, IndexError, AttributeError) as error:
        raise AssertionError(f"Invalid function schema: {name}{schema}") from error
    if not is_functional_schema(parsed):
        raise ValueError(
            f"custom_op only supports functional operators (no inputs that are written to or viewed, at "
            f"least one return), got {name}{schema}"
        )
    if any(a.name == "self" for a in parsed.arguments):
        raise ValueError(f"custom_op does not support arguments named 'self', got {name}{schema}")
    lib = torch.library.Library(space, "FRAGMENT")
    lib.define(f"{name}{schema}")
    return CustomOp(lib, qualname, lookup_op(qualname), None, _FROM_HERE)


def known(qualname):
    """The record of an operator, also of one that was defined elsewhere."""
    if qualname not in global_registry:
        overload = get_op(qualname)
        lib = torch.library.Library(parse_namespace(qualname)[0], "FRAGMENT")
        return CustomOp(lib, qualname, overload, True, _FROM_HERE)
    return global_registry[qualname]


def custom_op(qualname, manual_schema=None):
    """Declare an operator by a function's name and annotations, or a schema; a decorator."""

    def register(function):
        if not inspect.isfunction(function):
            raise ValueError(f"custom_op(...)(func): expected func to be a function, got {type(function)}")
        if function.__name__ != parse_namespace(qualname)[1]:
            raise ValueError(
                f"custom_op(qualname={qualname!r}, ...)(func): expected func to have name "
                f"{parse_namespace(qualname)[1]!r} but got {function.__name__!r}"
            )
        if manual_schema is not None:
            _check_signature(function, parse_schema(f"{function.__name__}{manual_schema}"))
        return declare(qualname, manual_schema or infer_schema(function, mutates_args=()))

    return register


def _check_signature(function, schema):
    parameters = inspect.signature(function).parameters.values()
    if not all(p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) for p in parameters):
        raise ValueError(
            "custom_op(..., manual_schema)(func): positional-only, *args and **kwargs are not supported"
        )
    if any(p.annotation is not p.empty for p in parameters):
        raise ValueError(
            "custom_op(..., manual_schema)(func): with a schema, func should not have annotations"
        )
    if any(p.default is not p.empty for p in parameters):
        raise ValueError("custom_op(..., manual_schema)(func): func should not have default arguments")
    names = [(p.name, p.kind is p.KEYWORD_ONLY) for p in parameters]
    if names != [(a.name, a.kwarg_only) for a in schema.arguments]:
        raise ValueError(
            f"custom_op(..., manual_schema)(func): expected func's signature to match the schema {schema}, "
            f"got {inspect.signature(function)}"
        )
