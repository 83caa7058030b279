"""``__torch_function__``: how tensor subclasses and modes take over functions."""

import contextlib
import functools
import inspect

import rushlight
from rushlight import _C
from rushlight._command.names import is_own, own_name

__all__ = [
    "BaseTorchFunctionMode",
    "TorchFunctionMode",
    "enable_reentrant_dispatch",
    "get_default_nowrap_functions",
    "get_ignored_functions",
    "get_overridable_functions",
    "get_testing_overrides",
    "handle_torch_function",
    "has_torch_function",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "redispatch_function",
    "resolve_name",
    "wrap_torch_function",
]

__capture__ = "through"  # Note [Capture marks]

has_torch_function = _C._has_torch_function
has_torch_function_unary = _C._has_torch_function_unary
has_torch_function_variadic = _C._has_torch_function_variadic
handle_torch_function = _C._handle_torch_function
_disabled_torch_function_impl = _C._disabled_torch_function_impl


@functools.cache
def get_default_nowrap_functions():
    """Functions whose results stay plain tensors although a subclass took part."""
    tensor = rushlight.Tensor
    return {tensor._base.__get__, tensor.grad.__get__, tensor._grad.__get__}


def is_tensor_like(inp):
    """Whether the object is a tensor or defines ``__torch_function__``."""
    return type(inp) is rushlight.Tensor or hasattr(inp, "__torch_function__")


_IGNORED = """
    typename is_tensor is_storage set_default_tensor_type set_default_device get_default_device set_rng_state
    get_rng_state manual_seed initial_seed seed save load set_printoptions set_default_dtype get_default_dtype
    get_num_threads set_num_threads from_numpy frombuffer asarray tensor
    as_tensor
    empty empty_permuted empty_strided zeros ones full eye arange range linspace logspace rand randn
    randint randperm
    scalar_tensor tril_indices triu_indices hann_window hamming_window bartlett_window blackman_window
    kaiser_window
    is_grad_enabled set_grad_enabled no_grad enable_grad inference_mode is_inference_mode_enabled
    promote_types
    result_type can_cast finfo iinfo broadcast_shapes use_deterministic_algorithms compile vmap cond
    are_deterministic_algorithms_enabled set_deterministic_debug_mode get_deterministic_debug_mode
    sparse_coo_tensor
    set_float32_matmul_precision get_float32_matmul_precision is_warn_always_enabled set_warn_always from_file
""".split()
_IGNORED_MEMBERS = """
    __new__ __init__ __subclasshook__ __hash__ __class__ __dict__ __delattr__ __setattr__ __getattribute__
    __sizeof__ __dir__ __init_subclass__ __doc__ __module__ __torch_function__ __torch_dispatch__
    as_subclass _make_subclass _make_wrapper_subclass new_tensor new_empty new_zeros
    new_ones new_full new_empty_strided new stride __iter__
""".split()


_PRIVATE_MEMBERS = """
    _backward_hooks _base _cdata _grad _grad_fn _post_accumulate_grad_hooks _version
    _coalesced_ _dimI _dimV _indices _is_view _nnz _to_dense _values
""".split()  # of Tensor, which __torch_function__ sees too
_PRIVATE_FUNCTIONS = """
    _assert_async _functional_assert_async _fused_rms_norm _indices_copy _native_batch_norm_legit _values_copy
    _sym_acos _sym_asin _sym_atan _sym_cos _sym_cosh _sym_sin _sym_sinh _sym_sqrt _sym_tan _sym_tanh
""".split()  # of `torch`
_COLLECTIVES = """
    broadcast all_reduce reduce all_reduce_coalesced all_gather all_gather_single all_gather_coalesced gather
    scatter reduce_scatter reduce_scatter_single all_to_all_single all_to_all isend irecv send recv
""".split()


@functools.cache
def _ignored():
    """function -> its public name, of those that ``__torch_function__`` does not see."""
    found = {f"torch.{name}": getattr(rushlight, name, None) for name in _IGNORED}
    found |= {f"torch.Tensor.{name}": getattr(rushlight.Tensor, name, None) for name in _IGNORED_MEMBERS}
    return {f: name for name, f in found.items() if callable(f)}


def get_ignored_functions():
    """Public functions that ``__torch_function__`` does not see: they make tensors or take none."""
    return set(_ignored())


def _public_functions(space):
    private = {rushlight.Tensor: _PRIVATE_MEMBERS, rushlight: _PRIVATE_FUNCTIONS}.get(space, ())
    public = [
        name for name in dir(space) if name[0] != "_" or (space is rushlight.Tensor and name[:2] == "__")
    ]
    for name in [*public, *private]:
        try:
            value = inspect.getattr_static(space, name) if space is rushlight.Tensor else getattr(space, name)
        except (AttributeError, ImportError):  # a name whose home is missing
            continue
        yield name, value


@functools.cache
def _overridable():
    """namespace -> its functions, and function -> its public name."""
    ignored, members, by_space, names = get_ignored_functions(), set(_IGNORED_MEMBERS), {}, {}
    spaces = {
        "torch": rushlight,
        "torch.functional": rushlight.functional,
        "torch.nn.functional": rushlight.nn.functional,
        "torch.nn.init": rushlight.nn.init,
        "torch.Tensor": rushlight.Tensor,
        "torch.linalg": rushlight.linalg,
        "torch.fft": rushlight.fft,
        "torch.special": rushlight.special,
    }
    for text, space in spaces.items():
        functions = by_space.setdefault(space, [])
        for name, value in _public_functions(space):
            if space is rushlight.Tensor and name in members:
                continue
            if type(value).__name__ in ("getset_descriptor", "property"):
                value, name = value.__get__, f"{name}.__get__"
            elif name[0].isupper():
                continue
            if not callable(value) or isinstance(value, type):
                continue
            if space is not rushlight.Tensor and name[0] != "_" and not _is_function(value):
                continue
            if value in ignored:
                continue
            names[value] = f"{text}.{name}"  # the last of its homes names it, as PyTorch's programs read it
            if space in (rushlight.Tensor, rushlight.nn.init) or name[-1] != "_":
                functions.append(value)
    distributed = rushlight.distributed
    if distributed.is_available():
        by_space[distributed] = [getattr(distributed, name) for name in _COLLECTIVES]
        names.update({getattr(distributed, name): f"torch.distributed.{name}" for name in _COLLECTIVES})
    return by_space, names


def _is_function(value):
    module = getattr(value, "__module__", None) or ""
    builtin = type(value) is type(_C._VariableFunctions.add)
    return builtin or (inspect.isfunction(value) and is_own(own_name(module)) and value.__name__[0] != "_")


def get_overridable_functions():
    """A dict from namespace to the functions in it that can be overridden."""
    return {space: list(functions) for space, functions in _overridable()[0].items()}


def _stand_in(function):
    """A function of the same parameters that returns -1."""

    def override(*args, **kwargs):
        return -1

    if getattr(function, "__name__", None) == "__get__":
        return lambda self: -1
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return override
    empty = inspect.Parameter.empty
    parameters = [p.replace(annotation=empty) for p in signature.parameters.values()]
    override.__signature__ = signature.replace(parameters=parameters, return_annotation=empty)
    return override


@functools.cache
def get_testing_overrides():
    """A dict from each overridable function to one of the same parameters that returns -1: what a test of
    ``__torch_function__`` may put in its place."""
    return {f: _stand_in(f) for functions in _overridable()[0].values() for f in functions}


@functools.cache
def _tensor_members():
    return set(_overridable()[0][rushlight.Tensor])


def is_tensor_method_or_property(func):
    """Whether the function is reached through a tensor."""
    return func in _tensor_members() or getattr(func, "__name__", None) == "__get__"


def resolve_name(f):
    """The public name of a function that takes or makes tensors, or None."""
    if isinstance(f, (rushlight._ops.OpOverload, rushlight._ops.OpOverloadPacket)):
        return str(f)
    return _overridable()[1].get(f) or _ignored().get(f)


def wrap_torch_function(dispatcher):
    """Make a Python function overridable; ``dispatcher`` picks the arguments that decide."""

    def decorate(func):
        @functools.wraps(func)
        def wrapped(*args, **kwargs):
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return func(*args, **kwargs)

        return wrapped

    return decorate


class TorchFunctionMode:
    """Sees every function call within its context: override ``__torch_function__``."""

    inner: "TorchFunctionMode"

    def __torch_function__(self, func, types, args=(), kwargs=None):
        raise NotImplementedError

    def __enter__(self):
        if getattr(self.__torch_function__, "__self__", self) is not self:
            raise RuntimeError(
                f"Defining {type(self).__name__}'s `__torch_function__` as a classmethod is not supported, "
                "please make it a plain method"
            )
        _C._push_on_torch_function_stack(self)
        return self

    def __exit__(self, exc_type, exc_value, traceback):
        _C._pop_torch_function_stack()

    @classmethod
    def push(cls, *args, **kwargs):
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that changes nothing."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


class enable_reentrant_dispatch:
    """A context in a ``__torch_dispatch__`` handler in which autograd records operators, as it does for the
    handler's caller."""

    def __enter__(self):
        self._guard = _C._RestorePythonTLSSnapshot()
        self._guard.__enter__()
        return self

    def __exit__(self, *exc):
        self._guard.__exit__(*exc)


@contextlib.contextmanager
def _enable_torch_function():
    """A context in which ``__torch_function__`` is called again, within one that disables it."""
    again = _C._EnableTorchFunction()
    try:
        yield
    finally:
        del again


def is_operator_method(func):
    """Whether this is a special method of Tensor that ``__torch_function__`` is told of in place of what is
    behind it, as that of ``1 - x``; `redispatch_function` shows those operators."""
    name = getattr(func, "__name__", "")
    return name.startswith("__") and name in _operator_methods()


@functools.cache
def _operator_methods():
    return frozenset(_C._operator_methods())


def redispatch_function(func, types, args, kwargs):
    """Calls ``func`` past the next look for ``__torch_function__``: what it calls in turn is seen again."""
    return _C._skip_one_hop_torch_function(func, types, args, kwargs)


def _get_current_function_mode():
    count = _C._len_torch_function_stack()
    return _C._get_function_stack_at(count - 1) if count else None


def _get_current_function_mode_stack():
    return [_C._get_function_stack_at(i) for i in range(_C._len_torch_function_stack())]


@contextlib.contextmanager
def _pop_mode_temporarily():
    mode = _C._pop_torch_function_stack()
    try:
        yield mode
    finally:
        _C._push_on_torch_function_stack(mode)
