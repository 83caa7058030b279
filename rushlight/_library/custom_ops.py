"""`CustomOpDef` and `custom_op`: Python functions that are operators."""

import contextlib
import functools
import logging

import rushlight as torch
from rushlight import _C
from rushlight._command.names import show_from

from . import simple_registry
from .aliasing import check_no_aliasing
from .autograd import AutogradKernel
from .infer_schema import infer_schema
from .utils import has_kwarg_only_tensors, has_tensor_arg

__all__ = ["CustomOpDef", "custom_op"]

log = logging.getLogger("torch._library.custom_ops")


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
        self._opoverload = _overload(namespace, name)
        self._device_argument = _device_argument(self._opoverload._schema)
        self._backend_fns, self._abstract_fn = {}, None
        self._backward_fn = self._setup_context_fn = None
        self._vmap_fn = None
        self._disabled_kernels: set = set()
        self._install_autograd()
        self._lib._register_fake(name, self._fake)
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
        kernel = AutogradKernel(self._opoverload, self._backward_fn, self._setup_context_fn)
        _C._set_operator_autograd(self._index, kernel)

    def register_kernel(self, device_types, fn=None, /):
        """An implementation for one or several device types; None for all."""

        def register(fn):
            types = [device_types] if device_types is None or isinstance(device_types, str) else device_types
            for kind in types:
                self._register_kernel(kind, fn)
            return fn

        return register if fn is None else register(fn)

    def _register_kernel(self, kind, fn):
        if kind not in (None, "cpu", "cuda", "meta"):
            raise RuntimeError(f"Unknown device type {kind!r}: kernels run on cpu, cuda or meta")
        without_tensors = not has_tensor_arg(self._opoverload._schema)
        if kind is not None and without_tensors and self._device_argument is None:
            raise ValueError(
                "Functions without tensor inputs are required to have a `device: torch.device` argument, "
                f"which says whose kernel runs: {self._opoverload._schema}"
            )
        self._backend_fns[kind] = fn
        if without_tensors and self._device_argument is not None:
            _C._set_operator_kernel(self._index, "any", self._by_device)
        else:
            _C._set_operator_kernel(self._index, kind or "any", self._guarded(fn, kind))

    def _by_device(self, *args, **kwargs):
        """The kernel for the device that an operator without tensors is told."""
        place = self._device_argument
        given = kwargs["device"] if "device" in kwargs else args[place] if place < len(args) else None
        if given is None:
            given = self._opoverload._schema.arguments[place].default_value or torch.get_default_device()
        kind = torch.device(given).type
        found = self._backend_fns.get(kind, self._backend_fns.get(None))
        if found is None:
            raise RuntimeError(
                f"{self._name} does not have a kernel registered for {kind}. Please use register_kernel to "
                "do so."
            )
        return self._guarded(found, kind)(*args, **kwargs)

    def _fake(self, *args, **kwargs):
        if self._abstract_fn is not None:
            return self._abstract_fn(*args, **kwargs)
        if self._opoverload._schema.is_mutable and not self._opoverload._schema.returns:
            return None  # it only writes, so sizes and dtypes stay
        raise NotImplementedError(
            f"There was no fake impl registered for {self}. This is necessary for torch.compile/export/fx "
            f"tracing to work. Please use `{self._init_fn.__name__}.register_fake` to add an fake impl."
        )

    @contextlib.contextmanager
    def set_kernel_enabled(self, device_type, enabled=True):
        """Within it, a device's kernel counts, or the function of ``custom_op`` runs in its place."""
        before = self._disabled_kernels
        word = "enable" if enabled else "disable"
        if device_type not in self._backend_fns:
            log.warning(
                "Attempted to %s kernel for %s on %s, but no kernel was registered for this device type.",
                word, device_type, self,
            )  # fmt: skip
        elif enabled is (device_type not in before):
            log.warning(
                "Attempted to %s kernel for %s on %s, but it was already %sd.", word, device_type, self, word
            )
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
        simple_registry.singleton.note_fake(self._qualname, fn)
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

    def _destroy(self):
        """Forget the operator."""
        self._lib._destroy()
        if _definitions.get(self._qualname) is self:
            del _definitions[self._qualname]

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


def _overload(namespace, name):
    plain, _, overload = name.partition(".")
    return getattr(getattr(getattr(torch.ops, namespace), plain), overload or "default")


def _device_argument(schema):
    """The place of an argument `device: torch.device`; None without."""
    places = [i for i, a in enumerate(schema.arguments) if a.name == "device" and "Device" in str(a.type)]
    return places[0] if places else None


def custom_op(name, fn=None, /, *, mutates_args, device_types=None, schema=None, tags=None):
    """Make a Python function an operator: autograd does not look inside, modes see it whole."""

    def inner(fn):
        space, plain = torch.library._check_qualname(name)
        text = schema if schema is not None else infer_schema(fn, mutates_args=mutates_args)
        made = CustomOpDef(space, plain, text, fn, tags)
        try:
            if schema is not None:
                _check_mutates(made, mutates_args)
            if has_kwarg_only_tensors(made._opoverload._schema):
                raise NotImplementedError(
                    "custom_op with kwarg-only Tensor args. Please make your tensors not kwarg-only. Got: "
                    f"{made._opoverload._schema}"
                )
        except (ValueError, NotImplementedError):
            made._destroy()
            raise
        made.register_kernel(device_types)(fn)
        return made

    return inner if fn is None else inner(fn)


def _check_mutates(made, mutates_args):
    written = {a.name for a in made._opoverload._schema.arguments if a.is_write}
    if mutates_args != "unknown" and written != set(mutates_args):
        raise ValueError(
            f"Attempted to create a custom op with `mutates_args={mutates_args}` and "
            f"`schema={made._schema}`. The schema suggests that the op mutates {written}, which is different "
            "from what was provided to us in `mutates_args`. Please make these consistent."
        )


show_from("library", custom_op)
