"""The structure of a tree without its leaves."""

from collections import defaultdict, deque, namedtuple

from rushlight.utils._pytree._nodes import STANDARD_DICT_TYPES, SUPPORTED_NODES, _get_node_type

__capture__ = "through"  # Note [Capture marks]


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
