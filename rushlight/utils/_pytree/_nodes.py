"""Which classes are nodes, and how they come apart."""

import dataclasses
import importlib
import threading
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable
from typing import Any, NamedTuple

from rushlight.utils._pytree._keys import GetAttrKey, MappingKey, SequenceKey
from rushlight.utils._pytree._types import NO_SERIALIZED_TYPE_NAME_FOUND

__capture__ = "through"  # Note [Capture marks]
__capture_state__ = frozenset(["SUPPORTED_NODES"])


class NodeDef(NamedTuple):
    type: type
    flatten_fn: Callable
    unflatten_fn: Callable
    flatten_with_keys_fn: Callable | None


class _Serialized(NamedTuple):
    typ: type
    serialized_type_name: str
    to_dumpable_context: Callable | None
    from_dumpable_context: Callable | None


SUPPORTED_NODES: dict = {}
SUPPORTED_SERIALIZED_TYPES: dict = {}
SERIALIZED_TYPE_TO_PYTHON_TYPE: dict = {}
CONSTANT_NODES: set = set()
_lock = threading.Lock()


def register_pytree_node(
    cls,
    flatten_fn,
    unflatten_fn,
    *,
    serialized_type_name=None,
    to_dumpable_context=None,
    from_dumpable_context=None,
    flatten_with_keys_fn=None,
):
    """Make instances of ``cls`` nodes.

    Args:
        flatten_fn: ``obj -> (children, context)``.
        unflatten_fn: ``(children, context) -> obj``.
        serialized_type_name: the name of the class in ``treespec_dumps``.
        to_dumpable_context, from_dumpable_context: turn the context into what JSON holds, and back.
        flatten_with_keys_fn: as ``flatten_fn``, with ``(key, child)`` for every child.
    """
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    _register(
        cls,
        flatten_fn,
        unflatten_fn,
        serialized_type_name=serialized_type_name,
        to_dumpable_context=to_dumpable_context,
        from_dumpable_context=from_dumpable_context,
        flatten_with_keys_fn=flatten_with_keys_fn,
    )


def _register(
    cls,
    flatten_fn,
    unflatten_fn,
    *,
    serialized_type_name=None,
    to_dumpable_context=None,
    from_dumpable_context=None,
    flatten_with_keys_fn=None,
):
    if (to_dumpable_context is None) != (from_dumpable_context is None):
        raise ValueError(
            f"Both to_dumpable_context and from_dumpable_context for {cls} must be None or registered."
        )
    with _lock:
        SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)
        name = serialized_type_name or NO_SERIALIZED_TYPE_NAME_FOUND
        SUPPORTED_SERIALIZED_TYPES[cls] = _Serialized(cls, name, to_dumpable_context, from_dumpable_context)
        SERIALIZED_TYPE_TO_PYTHON_TYPE[name] = cls


def _register_pytree_node(cls, flatten_fn, unflatten_fn, to_str_fn=None, maybe_from_str_fn=None, **keywords):
    """The former name of ``register_pytree_node``; registering again replaces."""
    _register(cls, flatten_fn, unflatten_fn, **keywords)


_private_register_pytree_node = _register_pytree_node


def _deregister_pytree_node(cls):
    with _lock:
        del SUPPORTED_NODES[cls]
        name = SUPPORTED_SERIALIZED_TYPES.pop(cls).serialized_type_name
        SERIALIZED_TYPE_TO_PYTHON_TYPE.pop(name, None)
        CONSTANT_NODES.discard(cls)


def register_constant(cls):
    """Make instances of ``cls`` nodes without children: part of the structure, compared by ``==``."""
    if cls.__eq__ is object.__eq__:
        raise TypeError("register_constant(cls) expects `cls` to have a non-default `__eq__` implementation.")
    if cls.__hash__ is None:
        raise TypeError(
            "register_constant(cls) expects `cls` to have a non-default `__hash__` implementation."
        )

    def flatten(value):
        return [], ConstantNode(value)

    _register(
        cls,
        flatten,
        lambda _, context: context.value,
        flatten_with_keys_fn=flatten,
    )
    CONSTANT_NODES.add(cls)


@dataclasses.dataclass(frozen=True)
class ConstantNode:
    value: Any


def is_constant_class(cls):
    return isinstance(cls, type) and cls in CONSTANT_NODES


def register_dataclass(cls, *, field_names=None, drop_field_names=None, serialized_type_name=None):
    """Make a dataclass a node whose children are its fields.

    Fields that are None belong to the structure. ``drop_field_names`` are neither: they must have defaults.
    """
    drop = set(drop_field_names or ())
    if field_names is None:
        if not dataclasses.is_dataclass(cls):
            raise ValueError(
                "field_names must be specified with a list of all fields used to initialize the class, as "
                "it is not a dataclass."
            )
        field_names = [f.name for f in dataclasses.fields(cls) if f.init]
    elif dataclasses.is_dataclass(cls):
        known = {f.name for f in dataclasses.fields(cls) if f.init}
        if unknown := set(field_names) - known:
            raise ValueError(f"field_names include fields that do not exist: {sorted(unknown)}")
    names = [n for n in field_names if n not in drop]

    def split(obj):
        present = [n for n in names if getattr(obj, n) is not None]
        return present, [n for n in names if getattr(obj, n) is None]

    def flatten(obj):
        present, absent = split(obj)
        return [getattr(obj, n) for n in present], [present, absent]

    def flatten_with_keys(obj):
        present, absent = split(obj)
        return [(GetAttrKey(n), getattr(obj, n)) for n in present], [present, absent]

    def unflatten(values, context):
        present, absent = context
        return cls(**dict(zip(present, values)), **dict.fromkeys(absent))

    _register(
        cls,
        flatten,
        unflatten,
        serialized_type_name=serialized_type_name,
        flatten_with_keys_fn=flatten_with_keys,
    )


def is_namedtuple_class(cls):
    """Whether a class comes from ``collections.namedtuple`` or ``typing.NamedTuple``."""
    return (
        isinstance(cls, type)
        and issubclass(cls, tuple)
        and isinstance(getattr(cls, "_fields", None), tuple)
        and all(type(field) is str for field in cls._fields)
        and callable(getattr(cls, "_make", None))
        and callable(getattr(cls, "_asdict", None))
    )


def is_namedtuple_instance(obj):
    return is_namedtuple_class(type(obj))


def is_namedtuple(obj):
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


_is_namedtuple_instance = is_namedtuple_instance


def is_structseq_class(cls):
    """Whether a class is a structure sequence: what operators with named results return."""
    return (
        isinstance(cls, type)
        and cls.__bases__ == (tuple,)
        and all(isinstance(getattr(cls, n, None), int) for n in ("n_sequence_fields", "n_fields"))
    )


def is_structseq_instance(obj):
    return is_structseq_class(type(obj))


def is_structseq(obj):
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


def _enumerated(values):
    return [(SequenceKey(i), v) for i, v in enumerate(values)]


def _keyed(d):
    return [(MappingKey(k), v) for k, v in d.items()]


def _register_builtin(cls, flatten, unflatten, keys, name, dump=None, load=None):
    _register(
        cls,
        flatten,
        unflatten,
        serialized_type_name=name,
        to_dumpable_context=dump,
        from_dumpable_context=load,
        flatten_with_keys_fn=lambda value: (keys(value), flatten(value)[1]),
    )


def _qualified(cls):
    return f"{cls.__module__}.{cls.__qualname__}"


def _class_named(name):
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module), attribute)


def _dump_namedtuple(context):
    name = SUPPORTED_SERIALIZED_TYPES.get(context)
    if name is None:
        raise NotImplementedError(
            f"Can't serialize TreeSpec of namedtuple class {context} because we didn't register a "
            "serializated_type_name. Please register using `_register_namedtuple`."
        )
    return name.serialized_type_name


def _load_namedtuple(name):
    if name not in SERIALIZED_TYPE_TO_PYTHON_TYPE:
        raise NotImplementedError(
            f"Can't deserialize TreeSpec of namedtuple class {name} because we couldn't find a "
            "serializated name."
        )
    return SERIALIZED_TYPE_TO_PYTHON_TYPE[name]


def _register_namedtuple(cls, *, serialized_type_name):
    """Lets treespecs with this class of named tuple be written and read."""
    SUPPORTED_SERIALIZED_TYPES[cls] = _Serialized(cls, serialized_type_name, None, None)
    SERIALIZED_TYPE_TO_PYTHON_TYPE[serialized_type_name] = cls


def _unflatten_defaultdict(values, context):
    factory, keys = context
    return defaultdict(factory, zip(keys, values))


_register_builtin(tuple, lambda t: (list(t), None), lambda v, _: tuple(v), _enumerated, "builtins.tuple")
_register_builtin(list, lambda x: (x, None), lambda v, _: list(v), _enumerated, "builtins.list")
_register_builtin(
    dict, lambda d: (list(d.values()), list(d)), lambda v, keys: dict(zip(keys, v)), _keyed, "builtins.dict"
)
_register_builtin(
    OrderedDict,
    lambda d: (list(d.values()), list(d)),
    lambda v, keys: OrderedDict(zip(keys, v)),
    _keyed,
    "collections.OrderedDict",
)
_register_builtin(
    defaultdict,
    lambda d: (list(d.values()), [d.default_factory, list(d)]),
    _unflatten_defaultdict,
    _keyed,
    "collections.defaultdict",
    lambda c: {
        "default_factory_module": c[0].__module__,
        "default_factory_name": c[0].__qualname__,
        "dict_context": c[1],
    },
    lambda d: [
        getattr(importlib.import_module(d["default_factory_module"]), d["default_factory_name"]),
        d["dict_context"],
    ],
)
_register_builtin(
    deque,
    lambda d: (list(d), d.maxlen),
    lambda v, maxlen: deque(v, maxlen=maxlen),
    _enumerated,
    "collections.deque",
)
_register_builtin(
    namedtuple,
    lambda t: (list(t), type(t)),
    lambda v, cls: cls(*v),
    lambda t: [(GetAttrKey(n), v) for n, v in zip(t._fields, t)],
    "collections.namedtuple",
    _dump_namedtuple,
    _load_namedtuple,
)


def _forms(cls):
    node = SUPPORTED_NODES[cls]
    return node.flatten_fn, node.unflatten_fn, node.flatten_with_keys_fn


# Packages register subclasses of the containers with these.
_tuple_flatten, _tuple_unflatten, _tuple_flatten_with_keys = _forms(tuple)
_list_flatten, _list_unflatten, _list_flatten_with_keys = _forms(list)
_dict_flatten, _dict_unflatten, _dict_flatten_with_keys = _forms(dict)
_ordereddict_flatten, _ordereddict_unflatten, _ordereddict_flatten_with_keys = _forms(OrderedDict)
_odict_flatten, _odict_unflatten = _ordereddict_flatten, _ordereddict_unflatten
_defaultdict_flatten, _defaultdict_unflatten, _defaultdict_flatten_with_keys = _forms(defaultdict)
_deque_flatten, _deque_unflatten, _deque_flatten_with_keys = _forms(deque)
_namedtuple_flatten, _namedtuple_unflatten, _namedtuple_flatten_with_keys = _forms(namedtuple)

STANDARD_DICT_TYPES = frozenset({dict, OrderedDict, defaultdict})
BUILTIN_TYPES = frozenset({tuple, list, dict, namedtuple, OrderedDict, defaultdict, deque})


def _register_structseq(cls):
    def keys(value):
        return [(GetAttrKey(n), v) for n, v in zip(_structseq_fields(cls), value)]

    _register_builtin(cls, lambda t: (list(t), None), lambda v, _: cls(v), keys, _qualified(cls))


def _structseq_fields(cls):
    import inspect

    members = (n for n, m in vars(cls).items() if inspect.ismemberdescriptor(m))
    return list(members)[: cls.n_sequence_fields]


def _get_node_type(tree):
    cls = type(tree)
    if cls in SUPPORTED_NODES:
        return cls
    if isinstance(tree, tuple):
        if is_namedtuple_class(cls):
            return namedtuple
        if is_structseq_class(cls):
            _register_structseq(cls)
    return cls


def tree_is_leaf(tree, is_leaf=None):
    """Whether a tree is one leaf."""
    return (is_leaf is not None and bool(is_leaf(tree))) or _get_node_type(tree) not in SUPPORTED_NODES


_is_leaf = tree_is_leaf
