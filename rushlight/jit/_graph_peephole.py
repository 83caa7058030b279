"""The pass that puts simpler operations in place of single ones: sums with 0, items and lengths of lists that
are written out, conversions of what is of the type already.

A tensor takes another one's place only where nothing is written to, and never as a result of the graph: what
a program gets is an object of its own."""

import rushlight
from rushlight.jit._graph_constants import _blocks, _constant, _forget_node, _Replacing, _writes
from rushlight.jit._graph_nodes import Node
from rushlight.jit._graph_passes import _jit_pass_dce

__all__ = ["_jit_pass_peephole"]

_NUMBERS = ("int", "float", "bool")
_NEUTRAL = {"aten::add": 0, "aten::sub": 0, "aten::mul": 1, "aten::floordiv": 1}
_OF_TENSORS = {"aten::add": 0, "aten::sub": 0, "aten::mul": 1, "aten::div": 1}
_COMMUTES = ("aten::add", "aten::mul")
_OF_EQUALS = {f"aten::{name}": name in ("eq", "le", "ge") for name in ("eq", "le", "ge", "ne", "lt", "gt")}
_EQUAL = ("int", "str", "bool", "int[]", "str[]", "bool[]")  # to themselves: there is no NaN among them
_CONVERSIONS = {"aten::Int": "int", "aten::Float": "float", "aten::Bool": "bool"}
_DIMS = {"aten::conv1d": 3, "aten::conv2d": 4, "aten::conv3d": 5}
_READS = ("aten::len", "aten::__getitem__", "aten::slice", "aten::__contains__")


def _jit_pass_peephole(graph, disable_shape_peepholes=False):
    """Put simpler operations in place of single ones, until none is left to change; what a tensor's known
    type allows may be disabled."""
    for _ in range(8):
        passing = _Peephole(graph, not disable_shape_peepholes)
        if not passing.run(graph):
            break
        passing.replace(graph)
    _jit_pass_dce(graph)


class _Peephole(_Replacing):
    def __init__(self, graph, typed):
        super().__init__()
        self.typed = typed
        nodes = [node for block in _blocks(graph) for node in block._nodes]
        self.given = {value for block in _blocks(graph) for value in block._outputs}
        self.given.update(v for node in nodes if node.kind().endswith("Construct") for v in node._inputs)
        self.written = any(_writes(node) and node.kind() not in _READS for node in nodes)

    def run(self, block):
        """Whether anything changed."""
        changed, left = False, []
        for node in block._nodes:
            inner = [self.run(b) for b in node._blocks]
            found = self.simpler(node) if len(node._outputs) == 1 else None
            changed = changed or any(inner) or found is not None
            if found is None:
                left.append(node)
                continue
            _forget_node(node)
            if isinstance(found, Node):
                left.append(found)
            else:
                self.same[node._outputs[0]] = self.of(found)
        block._nodes[:] = left
        return changed

    def simpler(self, node):
        """The value that stands for a node's, or a constant in place of the node; None of other nodes."""
        kind, (result,) = node.kind(), node._outputs
        if result in self.same or kind == "prim::Constant":
            return None
        inputs = [self.of(value) for value in node._inputs]
        if kind in _CONVERSIONS and len(inputs) == 1 and inputs[0]._type == _CONVERSIONS[kind]:
            return inputs[0]
        if kind == "prim::unchecked_cast" and inputs[0]._type == result._type:
            return inputs[0]
        if kind in _READS and inputs[0]._node is not None:
            return self.item(node, kind, inputs)
        if kind == "prim::If":
            return self.condition(node, inputs[0])
        if kind in ("aten::__and__", "aten::__or__") and len(inputs) == 2:
            return _undecided(kind, inputs)
        if kind in ("aten::__is__", "aten::__isnot__"):
            return self.nothing(node, inputs)
        if kind in _OF_EQUALS and inputs[0] is inputs[1] and inputs[0]._type in _EQUAL:
            return _literal(node, _OF_EQUALS[kind])
        if len(inputs) >= 2 and kind in (*_NEUTRAL, "aten::div"):
            return self.neutral(kind, inputs, result)
        return None if self.written else self.of_tensors(node, kind, inputs, result)

    def neutral(self, kind, inputs, result):
        """What an operation with 0 or 1 leaves as it is."""
        pairs = [(inputs[0], inputs[1])] + [(inputs[1], inputs[0])] * (kind in _COMMUTES)
        for value, other in pairs:
            number = _constant(other)
            if number is None or type(number[0]) not in (int, float) or value._type != result._type:
                continue
            whole = type(number[0]) is int
            if value._type in _NUMBERS and whole and number[0] == _NEUTRAL.get(kind):
                return value
            free = self.typed and not self.written and result not in self.given and len(inputs) == 2
            if free and number[0] == _OF_TENSORS.get(kind) and _keeps_type(value, kind, whole):
                return value
        return None

    def item(self, node, kind, inputs):
        """An item or the length of what is written out and only read."""
        made = inputs[0]._node
        read = all(use.kind() in _READS for use in inputs[0]._uses) and inputs[0] not in self.given
        if made.kind() == "aten::size" and kind == "aten::len" and len(made._inputs) == 1 and read:
            kind_of_tensor = made._inputs[0]._complete
            dims = kind_of_tensor.dim() if self.typed and kind_of_tensor is not None else None
            return None if dims is None else _literal(node, dims)
        if not read or made.kind() not in ("prim::ListConstruct", "prim::DictConstruct"):
            return None
        listed = made.kind() == "prim::ListConstruct"
        keys = [_constant(self.of(key)) for key in made._inputs[::2]]
        if not listed and (None in keys or len({repr(key) for key in keys}) < len(keys)):
            return None
        if kind == "aten::len":
            return _literal(node, len(made._inputs) if listed else len(keys))
        if kind == "aten::slice" and listed and len(inputs) == 4:
            bounds = [_constant(value) for value in inputs[1:]]
            if None in bounds:
                return None
            taken = made._inputs[slice(*(bound for (bound,) in bounds))]
            return Node("prim::ListConstruct", taken, node._outputs, line=node._line)
        index = _constant(inputs[1]) if len(inputs) == 2 else None
        if kind != "aten::__getitem__" or index is None:
            return None
        if not listed:
            return made._inputs[2 * keys.index(index) + 1] if index in keys else None
        inside = -len(made._inputs) <= index[0] < len(made._inputs)
        return self.of(made._inputs[index[0]]) if inside else None

    def condition(self, node, test):
        """The condition itself, where a choice gives whether it holds; else results get the types of both."""
        result, sides = node._outputs[0], [self.of(block._outputs[0]) for block in node._blocks]
        known = [_constant(side) for side in sides]
        bare = all(n.kind() == "prim::Constant" for block in node._blocks for n in block._nodes)
        if bare and known == [(True,), (False,)] and test._type == result._type == "bool":
            return test
        if result._type.endswith("?") and {side._type for side in sides} == {result._type[:-1]}:
            result._type, result._annotation = sides[0]._type, sides[0]._annotation
        return None

    def nothing(self, node, inputs):
        """Whether a value is None, where its type says so."""
        kinds = [value._type for value in inputs]
        if "NoneType" not in kinds or any(kind.endswith("?") or kind == "Any" for kind in kinds):
            return None
        same = kinds[0] == kinds[1]
        return _literal(node, same if node.kind() == "aten::__is__" else not same)

    def of_tensors(self, node, kind, inputs, result):
        made = inputs[0]._node if inputs else None
        if kind == "aten::type_as" and len(inputs) == 2:
            known = [value._complete for value in inputs]
            same = self.typed and None not in known and known[0].scalarType() == known[1].scalarType()
            same = same and known[0].device() == known[1].device()
            return inputs[0] if same else None
        if kind in ("aten::dim", "prim::ndim") and made is not None and made.kind() in _DIMS:
            return _literal(node, _DIMS[made.kind()])
        if kind == "aten::t" and made is not None and made.kind() == "aten::t" and result not in self.given:
            return self.of(made._inputs[0])
        return None


def _keeps_type(value, kind, whole):
    """Whether a tensor's type is known to be what arithmetic with a number leaves."""
    dtype = None if value._complete is None else value._complete.dtype()
    if dtype is None or dtype.is_floating_point:
        return dtype is not None
    return whole and dtype != rushlight.bool and kind != "aten::div"


def _undecided(kind, inputs):
    """The side that decides of ``and`` or ``or``, where the other one is known not to."""
    idle = kind == "aten::__and__"
    for value, other in (inputs, inputs[::-1]):
        if _constant(other) == (idle,) and value._type == other._type == "bool":
            return value
    return None


def _literal(node, value):
    node._outputs[0]._type = node._outputs[0]._annotation = type(value).__name__
    return Node("prim::Constant", (), node._outputs, {"value": value}, line=node._line)
