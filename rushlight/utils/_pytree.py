"""Trees of Python containers: taking them apart into leaves and a structure, and putting them together.

Lists, tuples, named tuples, dictionaries and deques are nodes; other classes become nodes by
``register_pytree_node``. Everything else is a leaf.
"""

import dataclasses
import importlib
import json
import threading
import types
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

__all__ = [
    "PyTree", "Context", "FlattenFn", "UnflattenFn", "DumpableContext", "ToDumpableContextFn",
    "FromDumpableContextFn", "PyTreeSpec", "TreeSpec", "LeafSpec", "keystr", "key_get",
    "register_pytree_node", "tree_is_leaf", "tree_flatten", "tree_flatten_with_path", "tree_unflatten",
    "tree_iter", "tree_leaves", "tree_leaves_with_path", "tree_structure", "tree_map", "tree_map_with_path",
    "tree_map_", "tree_map_only", "tree_map_only_", "tree_all", "tree_any", "tree_all_only",
    "tree_any_only", "treespec_dumps", "treespec_loads", "treespec_pprint", "is_namedtuple",
    "is_namedtuple_class", "is_namedtuple_instance", "is_structseq", "is_structseq_class",
    "is_structseq_instance",
]  # fmt: skip

T = TypeVar("T")
PyTree = Any
Context = Any
DumpableContext = Any
FlattenFn = FlattenFunc = Callable[[PyTree], tuple[list, Context]]
UnflattenFn = UnflattenFunc = Callable[[Iterable, Context], PyTree]
ToDumpableContextFn = Callable[[Context], DumpableContext]
FromDumpableContextFn = Callable[[DumpableContext], Context]
DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL = 1
NO_SERIALIZED_TYPE_NAME_FOUND = "NO_SERIALIZED_TYPE_NAME_FOUND"


# --- keys: the way from the root to a leaf


@dataclasses.dataclass(frozen=True)
class SequenceKey:
    idx: int

    def __str__(self):
        return f"[{self.idx!r}]"

    def get(self, sequence):
        return sequence[self.idx]


@dataclasses.dataclass(frozen=True)
class MappingKey:
    key: Any

    def __str__(self):
        return f"[{self.key!r}]"

    def get(self, mapping):
        return mapping[self.key]


@dataclasses.dataclass(frozen=True)
class GetAttrKey:
    name: str

    def __str__(self):
        return f".{self.name}"

    def get(self, obj):
        return getattr(obj, self.name)


KeyEntry = SequenceKey | MappingKey | GetAttrKey
KeyPath = tuple[KeyEntry, ...]


def keystr(kp):
    """A key path as it would be written in a program: ``['a'][0].x``."""
    return "".join(str(k) for k in kp)


def key_get(obj, kp):
    """What lies at the end of a key path."""
    for k in kp:
        obj = k.get(obj)
    return obj


# --- kinds of nodes


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


# --- named tuples and structure sequences


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


# --- the built-in nodes


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


# --- structures


class TreeSpec:
    """The structure of a tree: the kind of its root, what it takes to build it, and its children's."""

    __slots__ = ("_children", "_context", "num_children", "num_leaves", "num_nodes", "type")

    def __init__(self, type, context, children_specs):
        self.type, self._context, self._children = type, context, children_specs
        self.num_children = len(children_specs)
        leaf = type is None
        self.num_nodes = 1 + sum(c.num_nodes for c in children_specs)
        self.num_leaves = 1 if leaf else sum(c.num_leaves for c in children_specs)

    @property
    def context(self):
        return self._context

    @property
    def children_specs(self):
        return self._children

    def is_leaf(self):
        return self.num_nodes == 1 and self.num_leaves == 1

    def children(self):
        return list(self._children)

    def child(self, index):
        return self._children[index]

    def __repr__(self, indent=0):
        if self.type is None:
            return "*"
        inner = indent + 2
        rest = ",\n".join(" " * inner + c.__repr__(inner) for c in self._children[1:])
        first = self._children[0].__repr__(inner) if self._children else ""
        comma = ",\n" if rest else ""
        return f"TreeSpec({self.type.__name__}, {self._context}, [{first}{comma}{rest}])"

    def __eq__(self, other):
        if not isinstance(other, TreeSpec):
            return NotImplemented
        return self is other or (
            str(self.type) == str(other.type)
            and self._context == other._context
            and self._children == other._children
        )

    def __hash__(self):
        keys = self._context
        if self.type is defaultdict:
            keys = (keys[0], tuple(keys[1]))
        elif isinstance(keys, list):
            keys = tuple(keys)
        return hash((self.type, keys, tuple(self._children)))

    def __reduce__(self):
        return TreeSpec, (self.type, self._context, self._children)

    def flatten_up_to(self, tree):
        """The subtrees of ``tree`` at the leaves of this structure, which must be the upper part of it."""
        subtrees = []
        self._flatten_up_to(tree, subtrees)
        return subtrees

    def _flatten_up_to(self, tree, subtrees):
        if self.is_leaf():
            subtrees.append(tree)
            return
        for child, subtree in zip(self._children, self._children_of(tree)):
            child._flatten_up_to(subtree, subtrees)

    def _children_of(self, tree):
        node = _get_node_type(tree)
        both_dicts = self.type in STANDARD_DICT_TYPES and node in STANDARD_DICT_TYPES
        if self.type is not node and not both_dicts:
            raise ValueError(f"Node type mismatch; expected {self.type!r}, but got {node!r}.")
        if both_dicts:
            keys = self._context[1] if self.type is defaultdict else self._context
            expected, got = set(keys), set(tree)
            if expected != got:
                missing, extra = expected - got, got - expected
                message = f"; missing key(s): {missing}" if missing else ""
                message += f"; extra key(s): {extra}" if extra else ""
                raise ValueError(f"Node keys mismatch{message}.")
            return [tree[k] for k in keys]
        children, context = SUPPORTED_NODES[node].flatten_fn(tree)
        children = list(children)
        if len(children) != self.num_children:
            raise ValueError(f"Node arity mismatch; expected {self.num_children}, but got {len(children)}.")
        if context != self._context and self.type is not deque:
            raise ValueError(
                f"Node context mismatch for custom node type {self.type!r}."
                if self.type is not namedtuple
                else f"Node type mismatch; expected {self._context!r}, but got {context!r}."
            )
        return children

    def unflatten(self, leaves):
        """The tree of this structure with these leaves."""
        leaves = leaves if isinstance(leaves, (list, tuple)) else list(leaves)
        if len(leaves) != self.num_leaves:
            raise ValueError(
                f"treespec.unflatten(leaves): `leaves` has length {len(leaves)} but the spec refers to a "
                f"pytree that holds {self.num_leaves} items ({self})."
            )
        return self._build(iter(leaves))

    def _build(self, leaves):
        if self.type is None:
            return next(leaves)
        children = [c._build(leaves) for c in self._children]
        return SUPPORTED_NODES[self.type].unflatten_fn(children, self._context)


PyTreeSpec = TreeSpec


class _LeafSpecMeta(type):
    def __instancecheck__(cls, instance):
        return isinstance(instance, TreeSpec) and instance.is_leaf()


class LeafSpec(TreeSpec, metaclass=_LeafSpecMeta):
    """The structure of a single leaf."""

    __slots__ = ()

    def __new__(cls):
        return TreeSpec(None, None, [])


_LEAF_SPEC = TreeSpec(None, None, [])


def treespec_leaf():
    return _LEAF_SPEC


def treespec_tuple(iterable=()):
    return TreeSpec(tuple, None, list(iterable))


def treespec_dict(mapping=(), /, **kwargs):
    given = dict(mapping, **kwargs)
    return TreeSpec(dict, list(given), list(given.values()))


# --- taking apart and putting together


def _flatten_into(tree, leaves, is_leaf):
    node = _get_node_type(tree)
    if node not in SUPPORTED_NODES or (is_leaf is not None and is_leaf(tree)):
        leaves.append(tree)
        return _LEAF_SPEC
    children, context = SUPPORTED_NODES[node].flatten_fn(tree)
    return TreeSpec(node, context, [_flatten_into(c, leaves, is_leaf) for c in children])


def tree_flatten(tree, is_leaf=None):
    """The leaves of a tree, left to right, and its structure."""
    leaves = []
    return leaves, _flatten_into(tree, leaves, is_leaf)


def tree_unflatten(leaves, treespec):
    """The inverse of ``tree_flatten``."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(
            f"Expected `treespec` to be an instance of PyTreeSpec but got item of type {type(treespec)}."
        )
    return treespec.unflatten(leaves)


def tree_iter(tree, is_leaf=None):
    if tree_is_leaf(tree, is_leaf):
        yield tree
        return
    for child in SUPPORTED_NODES[_get_node_type(tree)].flatten_fn(tree)[0]:
        yield from tree_iter(child, is_leaf)


def tree_leaves(tree, is_leaf=None):
    return list(tree_iter(tree, is_leaf))


def tree_structure(tree, is_leaf=None):
    return tree_flatten(tree, is_leaf)[1]


def arg_tree_leaves(*args, **kwargs):
    """The leaves of all arguments."""
    return [leaf for value in (*args, *kwargs.values()) for leaf in tree_iter(value)]


def tree_map(func, tree, *rests, is_leaf=None):
    """A tree of the same structure with ``func`` of the leaves (of several trees, leaf by leaf)."""
    leaves, spec = tree_flatten(tree, is_leaf)
    return spec.unflatten([func(*row) for row in zip(leaves, *(spec.flatten_up_to(r) for r in rests))])


def tree_map_(func, tree, *rests, is_leaf=None):
    """Call ``func`` on the leaves for what it does; gives ``tree`` back."""
    leaves, spec = tree_flatten(tree, is_leaf)
    for row in zip(leaves, *(spec.flatten_up_to(r) for r in rests)):
        func(*row)
    return tree


def map_only(type_or_types_or_pred, /):
    """Decorates a function of leaves: it leaves alone what is of none of the types."""
    if isinstance(type_or_types_or_pred, (type, tuple, types.UnionType)):

        def applies(x):
            return isinstance(x, type_or_types_or_pred)

    elif callable(type_or_types_or_pred):
        applies = type_or_types_or_pred
    else:
        raise TypeError("Argument must be a type, a tuple of types, or a callable.")

    def decorate(func):
        return lambda x: func(x) if applies(x) else x

    return decorate


def tree_map_only(type_or_types_or_pred, /, func, tree, is_leaf=None):
    return tree_map(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_map_only_(type_or_types_or_pred, /, func, tree, is_leaf=None):
    return tree_map_(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_all(pred, tree, is_leaf=None):
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred, tree, is_leaf=None):
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(type_or_types, /, pred, tree, is_leaf=None):
    return all(pred(x) for x in tree_iter(tree, is_leaf) if isinstance(x, type_or_types))


def tree_any_only(type_or_types, /, pred, tree, is_leaf=None):
    return any(pred(x) for x in tree_iter(tree, is_leaf) if isinstance(x, type_or_types))


def _broadcast_to_and_flatten(tree, treespec, is_leaf=None):
    """The leaves of ``tree`` spread over ``treespec``, of which it must be the upper part; else None."""
    if tree_is_leaf(tree, is_leaf):
        return [tree] * treespec.num_leaves
    if treespec.is_leaf():
        return None
    node = _get_node_type(tree)
    if node != treespec.type:
        return None
    children, context = SUPPORTED_NODES[node].flatten_fn(tree)
    if len(children) != treespec.num_children or context != treespec.context:
        return None
    result = []
    for child, spec in zip(children, treespec.children()):
        flat = _broadcast_to_and_flatten(child, spec, is_leaf)
        if flat is None:
            return None
        result += flat
    return result


# --- with paths


def _with_paths(path, tree, is_leaf):
    node = _get_node_type(tree)
    if node not in SUPPORTED_NODES or (is_leaf is not None and is_leaf(tree)):
        yield path, tree
        return
    flatten = SUPPORTED_NODES[node].flatten_with_keys_fn
    if flatten is None:
        raise ValueError(
            f"Did not find a flatten_with_keys_fn for type: {node}. Please pass a flatten_with_keys_fn "
            "argument to register_pytree_node."
        )
    for key, child in flatten(tree)[0]:
        yield from _with_paths((*path, key), child, is_leaf)


def tree_flatten_with_path(tree, is_leaf=None):
    """As ``tree_flatten``, with ``(path, leaf)`` for every leaf."""
    return list(_with_paths((), tree, is_leaf)), tree_structure(tree, is_leaf)


def tree_leaves_with_path(tree, is_leaf=None):
    return list(_with_paths((), tree, is_leaf))


def tree_map_with_path(func, tree, *rests, is_leaf=None):
    """As ``tree_map``; ``func`` takes the path first."""
    leaves, spec = tree_flatten_with_path(tree, is_leaf)
    rows = zip(leaves, *(spec.flatten_up_to(r) for r in rests))
    return spec.unflatten([func(path, leaf, *others) for (path, leaf), *others in rows])


# --- as text


def treespec_dumps(treespec, protocol=None):
    """A structure as JSON."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(
            "treespec_dumps(treespec, protocol): Expected `treespec` to be instance of TreeSpec but got "
            f"item of type {type(treespec)}."
        )
    protocol = DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL if protocol is None else protocol
    if protocol != DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [1]")
    return json.dumps((protocol, _to_json(treespec)))


def _to_json(spec):
    if spec.is_leaf():
        return {"type": None, "context": None, "children_spec": []}
    known = SUPPORTED_SERIALIZED_TYPES.get(spec.type)
    if known is None or known.serialized_type_name == NO_SERIALIZED_TYPE_NAME_FOUND:
        raise NotImplementedError(
            f"No registered serialization name for {spec.type} found. Please update your "
            "_register_pytree_node call with a `serialized_type_name` kwarg."
        )
    dump = known.to_dumpable_context
    try:
        context = json.dumps(spec.context) if dump is None else dump(spec.context)
    except TypeError as error:
        raise TypeError(
            "Unable to serialize context. Please make the context json dump-able, or register a custom "
            "serializer using _register_pytree_node."
        ) from error
    children = [_to_json(c) for c in spec.children()]
    return {"type": known.serialized_type_name, "context": context, "children_spec": children}


def treespec_loads(serialized):
    """The inverse of ``treespec_dumps``."""
    protocol, spec = json.loads(serialized)
    if protocol != DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [1]")
    return _from_json(spec)


def _from_json(spec):
    name = spec["type"]
    if name is None and not spec["children_spec"] and spec["context"] is None:
        return _LEAF_SPEC
    if name not in SERIALIZED_TYPE_TO_PYTHON_TYPE:
        raise NotImplementedError(f"Deserializing `{name}` in pytree is not registered.")
    cls = SERIALIZED_TYPE_TO_PYTHON_TYPE[name]
    load = SUPPORTED_SERIALIZED_TYPES[cls].from_dumpable_context
    context = json.loads(spec["context"]) if load is None else load(spec["context"])
    return TreeSpec(cls, context, [_from_json(c) for c in spec["children_spec"]])


class _Asterisk:
    def __repr__(self):
        return "*"


_asterisk = _Asterisk()


def treespec_pprint(treespec):
    """A structure as text, with ``*`` for leaves."""
    return repr(tree_unflatten([_asterisk] * treespec.num_leaves, treespec))
