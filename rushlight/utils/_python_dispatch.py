"""``__torch_dispatch__``: modes that see every operator that really runs, and help for tensor subclasses."""

import collections
import contextlib
import functools

import rushlight
from rushlight import _C

__all__ = [
    "AliasInfo",
    "BaseTorchDispatchMode",
    "SchemaInfo",
    "TorchDispatchMode",
    "any_torch_dispatch_mode_on_stack",
    "autograd_would_have_decomposed",
    "get_alias_info",
    "is_traceable_wrapper_subclass",
    "is_traceable_wrapper_subclass_type",
    "return_and_correct_aliasing",
    "transform_subclass",
]


class TorchDispatchMode:
    """Sees every operator call within its context: override ``__torch_dispatch__``.

    Autograd has had its turn: calls of backward passes are seen, requests for gradients are not. While the
    handler runs, the mode is off the stack. A mode with ``_dispatch_key=DispatchKey.PreDispatch`` sees calls
    as the program makes them instead: composites whole, and autocast, transforms and autograd still to come.
    """

    _dispatch_key = None

    def __init__(self, _dispatch_key=None):
        if _dispatch_key is not None:
            self._dispatch_key = _dispatch_key
        self.old_dispatch_mode_flags: list = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        raise NotImplementedError

    def __enter__(self):
        if getattr(self.__torch_dispatch__, "__self__", self) is not self:
            raise RuntimeError(
                f"Defining {type(self).__name__}'s `__torch_dispatch__` as a classmethod is not supported, "
                "please make it a plain method"
            )
        _push_mode(self)
        return self

    def __exit__(self, exc_type, exc_val, exc_tb):
        _pop_mode(self._dispatch_key)  # which needs no new object: without memory, too, the mode has to end

    @classmethod
    def push(cls, *args, **kwargs):
        return cls(*args, **kwargs)

    @classmethod
    def is_infra_mode(cls):
        return False

    @classmethod
    def ignore_compile_internals(cls):
        """Whether a compiled program runs within the mode as if it were not there."""
        return False


class BaseTorchDispatchMode(TorchDispatchMode):
    """A mode that changes nothing."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def _is_pre_dispatch(key):
    return key is not None and key.name == "PreDispatch"


def _push_mode(mode):
    if _is_pre_dispatch(mode._dispatch_key):
        _C._push_on_pre_dispatch_stack(mode)
    else:
        _C._push_on_torch_dispatch_stack(mode)


def _pop_mode(k=None):
    return _C._pop_pre_dispatch_stack() if _is_pre_dispatch(k) else _C._pop_torch_dispatch_stack()


@contextlib.contextmanager
def _pop_mode_temporarily(k=None):
    mode = _pop_mode(k)
    try:
        yield mode
    finally:
        _push_mode(mode)


def _len_torch_dispatch_stack_pre_dispatch():
    return _C._len_pre_dispatch_stack()


def _pre_dispatch_mode_stack():
    return [_C._get_pre_dispatch_stack_at(i) for i in range(_C._len_pre_dispatch_stack())]


def _get_current_dispatch_mode():
    count = _C._len_torch_dispatch_stack()
    return _C._get_dispatch_stack_at(count - 1) if count else None


def _get_current_dispatch_mode_stack():
    return [_C._get_dispatch_stack_at(i) for i in range(_C._len_torch_dispatch_stack())]


def _all_modes():
    """The modes of this thread, those that see calls before others do last."""
    return [*_get_current_dispatch_mode_stack(), *_pre_dispatch_mode_stack()]


def is_in_torch_dispatch_mode(include_infra_modes=True):
    """Whether a mode is active; without ``include_infra_modes``, one that is no tool's."""
    modes = _get_current_dispatch_mode_stack()
    return any(include_infra_modes or not mode.is_infra_mode() for mode in modes)


def any_torch_dispatch_mode_on_stack():
    """Whether a mode is active on this thread."""
    return bool(_all_modes())


def is_in_any_mode_without_ignore_compile_internals():
    """Whether a mode is active that compiled programs must not pass over."""
    return any(not mode.ignore_compile_internals() for mode in _get_current_dispatch_mode_stack())


@contextlib.contextmanager
def _disable_current_modes():
    """Take all modes off this thread's stacks for a while."""
    modes = [_pop_mode(mode._dispatch_key) for mode in reversed(_all_modes())]
    try:
        yield modes[::-1]
    finally:
        for mode in reversed(modes):
            _push_mode(mode)


# --- wrapper subclasses -------------------------------------------------------------------------


def is_traceable_wrapper_subclass(t):
    """Whether a tensor subclass says what it is made of (``__tensor_flatten__`` and its inverse)."""
    return isinstance(t, rushlight.Tensor) and is_traceable_wrapper_subclass_type(type(t))


def is_traceable_wrapper_subclass_type(t):
    return (
        issubclass(t, rushlight.Tensor)
        and t is not rushlight.Tensor
        and hasattr(t, "__tensor_flatten__")
        and hasattr(t, "__tensor_unflatten__")
    )


def transform_subclass(t, callback, outer_size=None, outer_stride=None):
    """Rebuild a wrapper around ``callback(name, inner tensor)`` of all that it is made of."""
    names, context = t.__tensor_flatten__()
    inner = {name: callback(name, getattr(t, name)) for name in names}
    outer_size = t.size() if outer_size is None else outer_size
    outer_stride = t.stride() if outer_stride is None else outer_stride
    made = type(t).__tensor_unflatten__(inner, context, outer_size, outer_stride)
    if tuple(made.shape) != tuple(outer_size) or made.stride() != tuple(outer_stride):
        raise AssertionError(
            f"{type(t).__name__}.__tensor_unflatten__ gave shape {tuple(made.shape)} and strides "
            f"{made.stride()}, "
            f"expected {tuple(outer_size)} and {tuple(outer_stride)}"
        )
    return made


class AliasInfo(collections.namedtuple("AliasInfo", "alias_set is_write name")):
    """What a schema says of an argument or a result: letters of its memory, whether it is written to."""


class SchemaInfo(
    collections.namedtuple(
        "SchemaInfo", "args outs is_inplace_view_op outs_write_aliases read_only_alias_match_indexes"
    )
):
    """Of an operator: `AliasInfo` of arguments and results; the letter that each result was written to, or
    None; and which (argument, result) share memory that is only read."""


def _aliases(parameters):
    infos = ((p.alias_info, p.name or None) for p in parameters)
    return [
        AliasInfo(set(a.before_set), a.is_write, n) if a else AliasInfo(set(), False, n) for a, n in infos
    ]


@functools.cache
def get_alias_info(func):
    """Which arguments and results of an operator share memory, by its schema."""
    args, outs = _aliases(func._schema.arguments), _aliases(func._schema.returns)
    written = [next(iter(out.alias_set), None) if out.is_write else None for out in outs]
    if any(written) and not all(written):
        raise RuntimeError(f"Unsupported schema: {func._schema}")
    shared = [
        (i, j)
        for i, arg in enumerate(args)
        for j, out in enumerate(outs)
        if arg.alias_set & out.alias_set and not arg.is_write
    ]
    turned = rushlight.Tag.inplace_view in func.tags
    return SchemaInfo(args, outs, turned, written if any(written) else None, shared)


def autograd_would_have_decomposed(func, flat_args):
    """Whether autograd would see what an operator is made of, not the operator."""
    return func.traits.family == "composite" and not func.traits.kept_whole


@functools.cache
def _alias_plan(func):
    """Which outputs alias which arguments: [(output, argument position or name, written)]."""
    schema = func._schema
    plan = []
    for i, result in enumerate(schema.returns):
        if result.alias_info is None:
            continue
        for j, argument in enumerate(schema.arguments):
            info = argument.alias_info
            if info is not None and info.before_set & result.alias_info.before_set:
                where = argument.name if argument.kwarg_only else j
                plan.append((i, where, argument.is_write))
    return tuple(plan)


def _leaves(value):
    if isinstance(value, (tuple, list)):
        return [leaf for item in value for leaf in _leaves(item)]
    return [value]


def return_and_correct_aliasing(func, args, kwargs, out):
    """What a wrapper's ``__torch_dispatch__`` should return, so that views share their base's storage and
    operators that write return the very tensor they wrote to."""
    kwargs = kwargs or {}
    outs = out if isinstance(out, (tuple, list)) and len(func._schema.returns) > 1 else (out,)
    fixed = list(outs)
    for i, where, written in _alias_plan(func):
        source = kwargs.get(where) if isinstance(where, str) else args[where] if where < len(args) else None
        if source is None:
            continue
        if written:
            fixed[i] = source
            continue
        for view in _leaves(fixed[i]):
            if isinstance(view, rushlight.Tensor) and isinstance(source, rushlight.Tensor):
                _C._share_storage(view, source)
    return fixed[0] if len(fixed) == 1 and outs is not out else type(out)(fixed)
