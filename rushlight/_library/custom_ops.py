"""`CustomOpDef` and `custom_op`: Python functions that are operators."""

import contextlib
import functools
import warnings

import rushlight as torch
from rushlight import _C

from .aliasing import check_no_aliasing
from .autograd import autograd_kernel
from .infer_schema import infer_schema

__all__ = ["CustomOpDef", "custom_op"]


class CustomOpDef:
    """A Python function that is an operator: what ``custom_op`` returns."""

    def __init__(self, namespace, name, schema, fn, tags=None):
        self._namespace, self._name, self._schema = namespace, name, schema
        self._qualname, self._init_fn = f"{namespace}::{name}", fn
        previous = _definitions.get(self._qualname)
        if previous is not None:
            previous._lib._destroy()
        self._lib = torch.library.Library(namespace, "FRAGMENT")
        tags = tags if isinstance(tags, (list, tuple)) else [] if tags is None else [tags]
        self._lib.define(f"{name}{schema}", tags=[torch.Tag.pt2_compliant_tag, *tags])
        self._opoverload = getattr(getattr(torch.ops, namespace), name).default
        self._backend_fns, self._abstract_fn = {}, None
        self._backward_fn = self._setup_context_fn = None
        self._vmap_fn = None
        self._disabled_kernels: set = set()
        self._install_autograd()
        functools.update_wrapper(self, fn)
        _definitions[self._qualname] = self

    def __repr__(self):
        return f"<CustomOpDef({self._qualname})>"

    def __call__(self, *args, **kwargs):
        return self._opoverload(*args, **kwargs)

    @property
    def _index(self):
        return self._opoverload._entry.index

    def _install_autograd(self):
        kernel = autograd_kernel(self._opoverload, self._backward_fn, self._setup_context_fn)
        _C._set_operator_autograd(self._index, kernel)

    def register_kernel(self, device_types, fn=None, /):
        """An implementation for one or several device types; None for all."""

        def register(fn):
            types = [device_types] if device_types is None or isinstance(device_types, str) else device_types
            for kind in types:
                self._backend_fns[kind] = fn
                if kind not in (None, "cpu", "cuda", "meta"):
                    raise RuntimeError(f"Unknown device type {kind!r}: kernels run on cpu, cuda or meta")
                _C._set_operator_kernel(self._index, kind or "any", self._guarded(fn, kind))
            return fn

        return register if fn is None else register(fn)

    @contextlib.contextmanager
    def set_kernel_enabled(self, device_type, enabled=True):
        """Within it, a device's kernel counts, or the function of ``custom_op`` runs in its place."""
        before = self._disabled_kernels
        if device_type not in self._backend_fns:
            warnings.warn(f"{self} has no kernel for {device_type!r} to switch on or off", stacklevel=3)
        self._disabled_kernels = before - {device_type} if enabled else before | {device_type}
        try:
            yield
        finally:
            self._disabled_kernels = before

    def _guarded(self, fn, kind):
        """Results must be new tensors: autograd and the compiler take them for that."""

        @functools.wraps(fn)
        def kernel(*args, **kwargs):
            chosen = self._init_fn if kind in self._disabled_kernels else fn
            result = chosen(*args, **kwargs)
            check_no_aliasing(self._qualname, args, kwargs, result)
            return result

        return kernel

    def register_fake(self, fn, /):
        """The shapes and dtypes of the results, for meta and fake tensors."""
        self._abstract_fn = fn
        self._lib._register_fake(self._name, fn)
        return fn

    def register_autograd(self, backward, /, *, setup_context=None):
        """``backward(ctx, *grads)`` and ``setup_context(ctx, inputs, output)``."""
        if self._opoverload._schema.is_mutable:
            raise RuntimeError(
                f"Cannot register autograd formula for non-functional operator {self} with schema "
                f"{self._opoverload._schema}. Please create a functional operator and register an "
                "autograd formula "
                "for that."
            )
        self._backward_fn, self._setup_context_fn = backward, setup_context
        self._install_autograd()

    def register_torch_dispatch(self, torch_dispatch_class, fn=None, /):
        def register(fn):
            self._lib._register_torch_dispatch_rule(self._name, torch_dispatch_class, fn)
            return fn

        return register if fn is None else register(fn)

    def register_vmap(self, func=None):
        """``func(info, in_dims, *args)`` returns the batched result and its out_dims."""

        def register(func):
            self._vmap_fn = func
            _C._set_operator_batching(self._index, func)

        return register if func is None else register(func)

    def register_autocast(self, device_type, cast_inputs):
        torch.library.register_autocast(self, device_type, cast_inputs)


_definitions: dict = {}


def custom_op(name, fn=None, /, *, mutates_args, device_types=None, schema=None, tags=None):
    """Make a Python function an operator: autograd does not look inside, modes see it whole."""

    def inner(fn):
        space, plain = torch.library._check_qualname(name)
        text = schema if schema is not None else infer_schema(fn, mutates_args=mutates_args)
        made = CustomOpDef(space, plain, text, fn, tags)
        if schema is not None:
            _check_mutates(made, mutates_args)
        made.register_kernel(device_types)(fn)
        return made

    return inner if fn is None else inner(fn)


def _check_mutates(made, mutates_args):
    written = {a.name for a in made._opoverload._schema.arguments if a.is_write}
    if mutates_args != "unknown" and written != set(mutates_args):
        raise ValueError(
            f"Attempted to create a custom op with `mutates_args={mutates_args}` and "
            f"`schema={made._schema}. The "
            "schema suggests that the op mutates args {written} which are different from what was "
            "provided to us in "
            "`mutates_args`. Please make these consistent."
        )
