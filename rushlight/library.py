"""``torch.library``: operators that a program defines; what autograd, meta tensors and modes know of them.

A custom operator is a record of the operator table like any other; its kernels are Python functions.
"""

import rushlight as torch
from rushlight import _C, _ops
from rushlight._extension.dispatch_keys import DispatchKey
from rushlight._library.autograd import AutogradKernel
from rushlight._library.custom_ops import CustomOpDef, _definitions, custom_op
from rushlight._library.infer_schema import infer_schema
from rushlight._library.libraries import (
    KEYS,
    Library,
    _scoped_library,  # noqa: F401 (programs look for it here)
    fallthrough_kernel,
    overload_named,
)
from rushlight._library.utils import has_kwarg_only_tensors

__all__ = [
    "CustomOpDef",
    "Library",
    "custom_op",
    "define",
    "fallthrough_kernel",
    "get_ctx",
    "get_kernel",
    "impl",
    "impl_abstract",
    "infer_schema",
    "opcheck",
    "register_autocast",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "register_torch_dispatch",
    "register_vmap",
    "triton_op",
    "wrap_triton",
]

_keep: list = []  # libraries made on the user's behalf live on


def _library_for(lib, qualname):
    if lib is not None:
        return lib
    made = Library(qualname.split("::")[0], "FRAGMENT")
    _keep.append(made)
    return made


def _qualified(op):
    """ "ns::name" and the overload of whatever names an operator."""
    if isinstance(op, CustomOpDef):
        return op._qualname
    if isinstance(op, (_ops.OpOverload, _ops.OpOverloadPacket)):
        return op.name()
    if not isinstance(op, str):
        raise ValueError(f"expected a name, an operator of torch.ops or a custom operator, got {type(op)}")
    if "::" not in op:
        raise ValueError(f"expected a qualified name like 'mylib::myop', got {op!r}")
    return op


def _check_qualname(name):
    space, _, rest = name.partition("::")
    if not space or not rest:
        raise ValueError(
            f"Expected `name` to be of the form `namespace::name`, got {name}: the namespace and the name "
            "must not "
            "be empty"
        )
    return space, rest


def _defining(library, schema, alias_analysis):
    def register(func):
        library.impl(library.define(schema, alias_analysis), func)
        return func

    return register


def define(qualname, schema, *, alias_analysis="", lib=None, tags=()):
    """Define an operator: ``define("mylib::sin", "(Tensor x) -> Tensor")``.

    ``@define(library, "sin(Tensor x) -> Tensor")`` defines it with the function that follows.
    """
    if isinstance(qualname, Library):
        return _defining(qualname, schema, alias_analysis)
    if not isinstance(qualname, str):
        raise ValueError(
            f"define(qualname, schema): expected qualname to be instance of str, got {type(qualname)}"
        )
    space, name = qualname.split("::", 1) if "::" in qualname else ("", "")
    if not space or not name:
        raise ValueError(f"define: expected a name with its namespace, like 'mylib::myop', got {qualname!r}")
    if not schema.startswith("("):
        raise ValueError(
            'define(qualname, schema, ...): expected schema to look like e.g. "(Tensor x) -> Tensor" but '
            f'got "{schema}"'
        )
    _library_for(lib, qualname).define(name + schema, tags=tags)


_TYPES = {"cpu": "CPU", "cuda": "CUDA", "meta": "Meta", "default": "CompositeExplicitAutograd"}
_TYPES |= {name.lower(): name for name in ("XPU", "MPS", "HPU", "MTIA", "XLA", "IPU")}


def _key_of(kind):
    """The dispatch key that a device type or a key's own name means."""
    if kind in _TYPES or kind in DispatchKey.__members__:  # type: ignore[attr-defined]
        return _TYPES.get(kind, kind)
    return torch.device(kind).type.upper()  # refuses what is no device type


def _implementing(library, name, dispatch_key):
    def register(func):
        library.impl(name, func, dispatch_key)
        return func

    return register


def impl(qualname, types, func=None, *, lib=None):
    """Give an operator's kernel for device types, or for all as "default"; also a decorator.

    ``@impl(library, "sin", "CPU")`` registers the function that follows for a dispatch key.
    """
    if isinstance(qualname, Library):
        return _implementing(qualname, types, func or "")
    keys = [_key_of(kind) for kind in ([types] if isinstance(types, str) else types)]

    def register(func):
        library = _library_for(lib, qualname)
        for kind in keys:
            library.impl(qualname, func, kind)
        return func

    return register if func is None else register(func)


def _custom(op):
    if isinstance(op, CustomOpDef):
        return op
    return _definitions.get(_qualified(op).removesuffix(".default"))


# --- registration by name -----------------------------------------------------------------------


def register_kernel(op, device_types, func=None, /, *, lib=None):
    """An implementation of an operator for device types; also a decorator."""
    made = _custom(op)
    if made is not None:
        return made.register_kernel(device_types, func) if func else made.register_kernel(device_types)
    types = "default" if device_types is None else device_types
    return impl(_qualified(op), types, func, lib=lib)


def register_fake(op, func=None, /, *, lib=None, _stacklevel=1, allow_override=True):
    """The function that gives shapes and dtypes for meta and fake tensors; also a decorator."""
    name = _qualified(op)

    def register(func):
        made = _custom(op)
        if made is not None:
            return made.register_fake(func)
        _library_for(lib, name)._register_fake(name, func)
        return func

    return register if func is None else register(func)


def impl_abstract(qualname, func=None, *, lib=None, _stacklevel=1):
    """The former name of :func:`register_fake`."""
    return register_fake(qualname, func, lib=lib)


def register_autograd(op, backward, /, *, setup_context=None, lib=None):
    """The derivative of an operator: ``backward(ctx, *grads)``, ``setup_context(ctx, inputs, output)``."""
    made = _custom(op)
    if made is not None:
        return made.register_autograd(backward, setup_context=setup_context)
    overload = overload_named(_qualified(op))
    _refuse_kwarg_only_tensors("register_autograd", overload)
    if overload._schema.is_mutable:
        raise RuntimeError(
            f"Cannot register autograd formula for non-functional operator {op} with schema "
            f"{overload._schema}. "
            "Please create a functional operator and register an autograd formula for that."
        )
    library = _library_for(lib, _qualified(op))
    library._note(overload, "Autograd")
    _C._set_operator_autograd(library._index(overload), AutogradKernel(overload, backward, setup_context))


def _refuse_kwarg_only_tensors(what, overload):
    if has_kwarg_only_tensors(overload._schema):
        raise NotImplementedError(
            f"{what} with kwarg-only Tensor args. In the original definition of the op, please make your "
            f"tensors not kwarg-only. Got: {overload._schema}"
        )


def register_torch_dispatch(op, torch_dispatch_class, func=None, /, *, lib=None):
    """How a mode or tensor subclass runs an operator: ``func(mode_or_class, func, types, args, kwargs)``."""
    name = _qualified(op)

    def register(func):
        _library_for(lib, name)._register_torch_dispatch_rule(
            name.removesuffix(".default"), torch_dispatch_class, func
        )
        return func

    return register if func is None else register(func)


def register_vmap(op, func=None, /, *, lib=None):
    """How to run an operator on a batch: ``func(info, in_dims, *args)`` gives the result and its out_dims."""

    def register(func):
        made = _custom(op)
        if made is not None:
            return made.register_vmap(func)
        name = _qualified(op)
        overload = overload_named(name)
        _refuse_kwarg_only_tensors("register_vmap", overload)
        _C._set_operator_batching(_library_for(lib, name)._index(overload), func)

    return register if func is None else register(func)


def _run_vmap_rule(rule, batch_size, randomness, in_dims, args, kwargs):
    """Call a rule as PyTorch does; its results, with the dimension of examples first."""
    from rushlight._functorch.autograd_function import VmapInfo

    results, out_dims = rule(VmapInfo(batch_size=batch_size, randomness=randomness), in_dims, *args, **kwargs)

    def in_front(t, dim):
        if isinstance(t, (list, tuple)):
            dims = dim if isinstance(dim, (list, tuple)) else [dim] * len(t)
            return [in_front(item, d) for item, d in zip(t, dims, strict=True)]
        if not isinstance(t, torch.Tensor):
            return t
        return t.expand(batch_size, *t.shape) if dim is None else t.movedim(dim, 0)

    return in_front(results, out_dims)


def register_autocast(op, device_type, cast_inputs, /, *, lib=None):
    """Where autocast is active for `device_type`, run the operator in dtype `cast_inputs`.

    Floating-point tensors on the device, but not float64, are cast; inside the operator nothing is. Raises
    ValueError for another `device_type` than "cpu" and "cuda"."""
    from rushlight.amp.autocast_mode import _cast

    name = _qualified(op)
    if device_type not in ("cpu", "cuda"):
        raise ValueError(f"Unknown device type: {device_type}")
    if not isinstance(cast_inputs, torch.dtype):
        raise TypeError(f"register_autocast: cast_inputs must be a dtype, not {type(cast_inputs).__name__}")
    overload = overload_named(name)

    def cast(*args, **kwargs):
        return overload(*_cast(args, device_type, cast_inputs), **_cast(kwargs, device_type, cast_inputs))

    _library_for(lib, name).impl(name, cast, f"Autocast{device_type.upper()}", allow_override=True)


class _SafeKernelFunction:
    """What `get_kernel` returns."""

    def __init__(self, overload, kernel):
        self._overload, self._kernel = overload, kernel

    def __repr__(self):
        return f"SafeKernelFunction({self._overload})"

    def call_boxed(self, dispatch_keys, *args, **kwargs):
        """Run it; autograd and modes do not see the call."""
        with _C._DisableTorchDispatch(), torch.no_grad():
            return self._kernel(*args, **kwargs)


def get_kernel(op, dispatch_key):
    """The kernel of an operator for a dispatch key, as it is now, so that what takes its place may call it by
    ``call_boxed(dispatch_keys, *args)``.

    Raises RuntimeError for operators that do not exist, ValueError for unknown keys."""
    if not isinstance(op, (str, _ops.OpOverload, CustomOpDef)):
        raise ValueError(f"get_kernel({op}): got unexpected type for op: {type(op)}")
    name, key = _qualified(op), str(getattr(dispatch_key, "name", dispatch_key))
    if key not in DispatchKey.__members__:  # type: ignore[attr-defined]
        raise ValueError(f"Invalid dispatch key: {dispatch_key}")
    try:
        overload = overload_named(name)
    except AttributeError:
        raise RuntimeError(f"operator {name} does not exist") from None
    if overload._record():  # built in: it has a kernel for every key
        return _SafeKernelFunction(overload, overload)
    index, slot = overload._entry.index, KEYS.get(key)
    kernels = [slot, "any", "composite"] if slot in ("cpu", "cuda", "meta") else [slot]
    given = [_C._get_operator_kernel(index, one) for one in kernels if one is not None]
    return _SafeKernelFunction(overload, next((k for k in given if k is not None), overload))


class FakeImplCtx:
    """What :func:`get_ctx` gives an operator's fake function."""

    def new_dynamic_size(self, *, min=0, max=None):
        """A size that depends on data: a sample of it, which the trace under way knows as a symbol."""
        from rushlight._subclasses._data_shapes import asked_size

        if min < 0:
            raise ValueError(
                f"ctx.new_dynamic_size(min={min}): the least size must be greater than or equal to 0"
            )
        return asked_size(min, max)

    create_unbacked_symint = new_dynamic_size


def get_ctx():
    """The context of a running fake function."""
    return FakeImplCtx()


def triton_op(name, fn=None, /, *, mutates_args, schema=None):
    """A custom operator whose function calls Triton kernels, where Triton is installed and has a device; or
    else another function, which ``register_kernel`` adds."""
    return custom_op(name, fn, mutates_args=mutates_args, schema=schema)


def wrap_triton(triton_kernel, /):
    """The Triton kernel, to be called in a `triton_op`. Nothing looks into the operator, so it needs no
    wrapper."""
    if not callable(getattr(triton_kernel, "run", None)):
        raise RuntimeError(
            "wrap_triton only works on functions annotated with triton.jit or triton.autotune, got "
            f"{type(triton_kernel).__name__}"
        )
    return triton_kernel


def opcheck(op, args, kwargs=None, *, test_utils=None, raise_exception=True, atol=None, rtol=None):
    """Test an operator's registrations on sample arguments; ``{"test_schema": "SUCCESS", ...}``."""
    from rushlight._library.opcheck import run

    return run(op, args, kwargs or {}, test_utils, raise_exception, atol, rtol)
