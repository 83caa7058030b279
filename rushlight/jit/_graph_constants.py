"""Passes that work with constants and with equal operations.

A loop of a script's graph names what it had before its first turn, so what is in one stays as it is."""

import rushlight
from rushlight import Tensor, ops
from rushlight.jit._graph_nodes import Graph, Node, Value
from rushlight.jit._graph_passes import _has_effect, _jit_interpret_graph, _jit_pass_dce

__all__ = ["_jit_pass_constant_pooling", "_jit_pass_constant_propagation", "_jit_pass_cse"]


def _jit_pass_constant_propagation(graph):
    """Put constants in place of operations on constants, and the branch in place of a choice between two."""
    passing = _Replacing()
    passing.plain_only = any(_writes(node) for block in _blocks(graph) for node in block._nodes)
    passing.fold(graph)
    passing.replace(graph)
    _jit_pass_dce(graph)


def _jit_pass_constant_pooling(graph):
    """Keep one of each constant, at the front."""
    passing, known = _Replacing(), {}
    for block in list(_blocks(graph)):
        for node in [n for n in block._nodes if n.kind() == "prim::Constant"]:
            kept = known.setdefault(_constant_key(node), node)
            if kept is node:
                if block is not graph:
                    block._nodes.remove(node)
                    graph._nodes.insert(0, node)
            else:
                passing.same[node._outputs[0]] = kept._outputs[0]
                block._nodes.remove(node)
    pooled = [n for n in graph._nodes if n.kind() == "prim::Constant"]
    graph._nodes[:] = pooled + [n for n in graph._nodes if n.kind() != "prim::Constant"]
    passing.replace(graph)


def _jit_pass_cse(graph):
    """Compute once what is computed twice from equal values, where nothing else follows from that."""
    passing = _Replacing()
    passing.share(graph, set(graph._outputs))
    passing.replace(graph)


class _Replacing:
    """Values that others stand for."""

    def __init__(self):
        self.same = {}
        self.plain_only = False  # whether something is written to, which might be what is computed

    def of(self, value):
        while value in self.same:
            value = self.same[value]
        return value

    def replace(self, block):
        """Name the values that stand for others."""
        for node in block._nodes:
            for i, value in enumerate(node._inputs):
                if value in self.same:
                    if node in value._uses:
                        value._uses.remove(node)
                    node._inputs[i] = self.of(value)
                    node._inputs[i]._uses.append(node)
            for inner in node._blocks:
                self.replace(inner)
        block._outputs[:] = map(self.of, block._outputs)

    # --- constants

    def fold(self, block):
        left = []
        for node in block._nodes:
            given = [_constant(self.of(value)) for value in node._inputs]
            if node.kind() == "prim::If":
                left += self.choose(node, given[0])
            elif (made := _decided_by_one(node, given)) is not None:
                left.append(made)
            elif self.may_fold(node, given) and (made := _computed(node, given)) is not None:
                left.append(made)
            else:
                left.append(node)
        block._nodes[:] = left

    def may_fold(self, node, given):
        whole = not node._blocks and None not in given
        return whole and not (self.plain_only and any(v._type not in _PLAIN for v in node._outputs))

    def choose(self, node, test):
        """What is left of a choice: the branch that is known, or itself with the results that differ."""
        if test is not None and isinstance(test[0], bool):
            taken, other = node._blocks if test[0] else node._blocks[::-1]
            _forget(other)
            self.fold(taken)
            self.same.update(zip(node._outputs, map(self.of, taken._outputs), strict=True))
            return taken._nodes
        for inner in node._blocks:
            self.fold(inner)
        pairs = list(zip(*(map(self.of, inner._outputs) for inner in node._blocks), strict=True))
        for i in reversed(range(len(pairs))):
            if pairs[i][0] is pairs[i][1]:
                self.same[node._outputs.pop(i)] = pairs[i][0]
                for inner in node._blocks:
                    del inner._outputs[i]
        return [node]

    # --- equal operations

    def share(self, block, leaving, outer=()):
        known, left = dict(outer), []
        for node in block._nodes:
            key = self.key(node)
            found = None if key is None else known.get(key)
            if found is not None and not any(
                _is_shared(v, leaving) for v in (*node._outputs, *found._outputs)
            ):
                self.same.update(zip(node._outputs, found._outputs, strict=True))
                _forget_node(node)
                continue
            left.append(node)
            if key is not None:
                known[key] = node
            for inner in node._blocks if node.kind() == "prim::If" else ():
                self.share(inner, leaving | set(inner._outputs), known)
            if _has_effect(node):  # what was computed before from what it may write to is another value
                known = {k: n for k, n in known.items() if all(v._type in _PLAIN for v in n._inputs)}
        block._nodes[:] = left

    def key(self, node):
        """What an operation computes; None where it does more, or another thing each time."""
        if node._blocks or node.kind() == "prim::GetAttr" or not _is_determined(node):
            return None
        if node.kind() == "prim::Constant":
            return _constant_key(node)
        kinds = tuple(value._type for value in node._outputs)
        return node.kind(), tuple(map(self.of, node._inputs)), repr(node._attributes), kinds


def _writes(node):
    told = node._blocks or node.kind() in ("prim::Print", "prim::RaiseException")
    return not told and _has_effect(node)


def _is_shared(value, leaving):
    """Whether a value is seen as an object of its own: it leaves the graph or is written to."""
    if value._type in _PLAIN or value.node().kind() == "prim::Constant":
        return False
    kept = any(use.kind().endswith("Construct") for use in value._uses)  # and may leave within that
    return kept or value in leaving or any(_has_effect(use) for use in value._uses)


_PLAIN = ("int", "float", "bool", "str", "complex", "NoneType")


def _blocks(block):
    yield block
    for node in block._nodes:
        for inner in node._blocks:
            yield from _blocks(inner)


def _forget(block):
    for node in block._nodes:
        _forget_node(node)


def _forget_node(node):
    for value in node._inputs:
        if node in value._uses:
            value._uses.remove(node)
    for inner in node._blocks:
        _forget(inner)


def _constant(value):
    """A constant's value in a tuple; None of other values."""
    node = value._node
    if node is None or node.kind() != "prim::Constant" or "name" in node._attributes:
        return None
    return (node._attributes.get("value"),)


def _constant_key(node):
    """Equal for constants of equal values and types; tensors are told apart by what is in them."""
    value = node._attributes.get("value")
    if isinstance(value, Tensor):
        value = (value.dtype, value.device, tuple(value.shape), repr(value.tolist()))
    return node.kind(), repr(value), repr(node._attributes.get("name")), node._outputs[0]._type


def _is_determined(node):
    """Whether equal values give an equal result and nothing else happens."""
    space, _, name = node.kind().partition("::")
    if _has_effect(node):
        return False
    packet = getattr(getattr(ops, space, None), name, None) if space == "aten" else None
    if packet is None:
        return space == "prim"
    tags = [tag for overload in packet.overloads() for tag in getattr(packet, overload).tags]
    return rushlight.Tag.nondeterministic_seeded not in tags


def _decided_by_one(node, given):
    """The constant that `and` or `or` gives where one side decides; None of all else."""
    decides = {"aten::__and__": False, "aten::__or__": True}.get(node.kind())
    if decides is None or (decides,) not in given or any(v._type != "bool" for v in node._inputs):
        return None
    _forget_node(node)
    return Node("prim::Constant", (), node._outputs, {"value": decides}, line=node._line)


def _computed(node, given):
    """The constant that an operation on these constants gives; None where there is none."""
    if node.kind() == "prim::Constant" or len(node._outputs) != 1 or not _is_determined(node):
        return None
    (result,) = node._outputs
    graph, values = Graph(), []
    for value, (constant,) in zip(node._inputs, given, strict=True):
        attributes = {} if constant is None else {"value": constant}
        values.append(Value(value._name, value._type, annotation=value._annotation))
        graph._nodes.append(Node("prim::Constant", (), [values[-1]], attributes))
    made = Value("result", result._type, annotation=result._annotation)
    graph._nodes.append(Node(node._kind, values, [made], node._attributes))
    graph._outputs = [made]
    try:
        with rushlight.no_grad():
            found = _jit_interpret_graph(graph, ())
    except Exception:  # what fails does so in a run
        return None
    if not _may_be_constant(found):
        return None
    _forget_node(node)
    return Node("prim::Constant", (), [result], {} if found is None else {"value": found}, line=node._line)


def _may_be_constant(value):
    if isinstance(value, (list, tuple)):
        return all(map(_may_be_constant, value))
    if isinstance(value, dict):
        return all(_may_be_constant(part) for pair in value.items() for part in pair)
    if isinstance(value, Tensor):
        return not value.requires_grad
    return value is None or type(value) in (bool, int, float, complex, str)
