"""Which steps of two traces of a program correspond, though at some sizes a step is left out.

A slice of everything, padding by nothing, or a view in the same shape is a step at one size and none at
another. A trace that has all steps stands for the others if what they lack would change nothing there.
"""

import rushlight as torch
from rushlight._higher_order_ops._regions import same_region, values_of
from rushlight._ops import OpOverload
from rushlight.fx.node import Node
from rushlight.utils import _pytree as pytree

_VIEWS = frozenset(("view", "_unsafe_view"))  # `reshape` is one or the other, as strides allow

_MOST_NUMBERS = 16  # of a tensor that is made of them by operators


class Specialized(Exception):
    """The program depends on the example's sizes; says how, and at which node."""

    def __init__(self, what, node=None):
        super().__init__(what)
        self.node = node


def leaves_of(node):
    """The leaves of a node's arguments; of one that stands for a graph, its plain values, and of a small
    tensor that the program made of numbers, these."""
    if is_explained(node.meta.get("constant")):
        return node.meta["constant"].flatten().tolist()
    if "region" in node.meta:
        return values_of(node.meta["region"])
    return pytree.tree_leaves((node.args, node.kwargs))


def is_explained(constant):
    """Whether a constant of a graph may be one of numbers that change with the sizes."""
    return constant is not None and constant.numel() <= _MOST_NUMBERS


def same(a, b):
    return type(a) is type(b) and (a == b or (a != a and b != b))


def name_of(node):
    """What a node calls, as messages show it."""
    return getattr(node.target, "_opname", None) or getattr(node.target, "__name__", str(node.target))


def align(template, other):
    """For each node of a graph the leaves of its arguments in another one, whose nodes are the template's;
    None for what may be anything."""
    return _Alignment(template, other).run()


def partners(template, other):
    """For each node of a graph the one of another graph that has its value at the other's sizes."""
    alignment = _Alignment(template, other)
    alignment.run()
    return alignment.partner


def work_of(graph):
    """The nodes that do more than lay the same elements out in another way."""
    return [n for n in graph.nodes if not _same_elements(n.target)]


def _same_elements(target):
    return isinstance(target, OpOverload) and target.traits.same_elements


def steps_of(graph):
    """How many steps a graph has that other traces may lack."""
    return sum(not _is_alias(node) for node in graph.nodes)


class _Alignment:
    def __init__(self, template, other):
        self.template, self.others = list(template.nodes), list(other.nodes)
        self.counterpart = {}  # node of the other graph -> the template's
        self.partner = {}  # the template's -> the node whose value it has at the other sizes
        self.left_out = {}  # node of the template that the other graph lacks -> what it takes
        self.copies = not any(writes(n) for n in (*self.template, *self.others))

    def run(self):
        rows, rest = [], iter(self.others)
        pending = next(rest)
        for node in self.template:
            while True:
                leaves = self._matched(node, pending)
                if leaves is not None:
                    self.counterpart[pending], self.partner[node] = node, pending
                    pending = next(rest, None)
                    break
                leaves = self._identity(node)
                if leaves is not None:
                    source = node.args[0]
                    self.left_out[node], self.partner[node] = source, self.partner[source]
                    break
                if not _is_alias(pending):
                    raise Specialized("takes another path at other sizes", node)
                self.counterpart[pending] = self.counterpart[pending.args[0]]
                pending = next(rest, None)
            rows.append(leaves)
        return rows

    def _matched(self, node, other):
        """The other node's leaves if it is the same step."""
        if other is None or node.op != other.op:
            return None
        if node.target != other.target and not _VIEWS >= {name_of(node), name_of(other)}:
            return self._whole(node, other) if _is_alias(other) else None
        if "region" in node.meta and not same_region(node.meta["region"], other.meta["region"]):
            raise Specialized("runs a function of an operator that is another one at other sizes", node)
        ours, theirs = leaves_of(node), leaves_of(other)
        if len(ours) != len(theirs):
            return None
        for a, b in zip(ours, theirs):
            if isinstance(a, Node) != isinstance(b, Node):
                return None
            if isinstance(a, Node) and self._resolved(a) is not self._resolved(self.counterpart[b]):
                return None
        if name_of(node) == "slice" and node.args[1:2] != other.args[1:2]:
            return None
        return theirs

    def _whole(self, node, other):
        """The leaves of a slice of everything, which is an alias at other sizes."""
        if name_of(node) != "slice":
            return None
        source = node.args[0]
        if self._resolved(source) is not self._resolved(self.counterpart[other.args[0]]):
            return None
        return self._identity(node)

    def _resolved(self, node):
        while node in self.left_out:
            node = self.left_out[node]
        return node

    def _identity(self, node):
        """The leaves with which a step changes nothing at the other sizes."""
        source = node.args[0] if node.args else None
        if node.op != "call_function" or source not in self.partner:
            return None
        value = self.partner[source].meta.get("val")
        if not isinstance(value, torch.Tensor):
            return None
        name, rest = name_of(node), node.args[1:]
        if name == "alias" or (name == "clone" and self.copies):
            return leaves_of(node)
        if name == "slice" and (len(rest) < 4 or rest[3] == 1) and value.dim() > rest[0]:
            changed = (rest[0], 0, value.shape[rest[0]], *rest[3:])
        elif name == "constant_pad_nd" and self.copies:
            changed = ([0] * len(rest[0]), *rest[1:])
        elif name in ("view", "expand", "_unsafe_view") and len(rest[0]) == value.dim():
            changed = ([n if n == -1 else size for n, size in zip(rest[0], value.shape)], *rest[1:])
        else:
            return None
        return pytree.tree_leaves(((source, *changed), node.kwargs))


def _is_alias(node):
    return node is not None and node.op == "call_function" and name_of(node) == "alias"


def writes(node):
    """Whether a node calls an operator that writes to an argument."""
    schema = getattr(node.target, "_schema", None)
    return schema is not None and schema.is_mutable
