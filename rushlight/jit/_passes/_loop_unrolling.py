"""The pass that writes out turns of loops: all of them where their number is known and small, else eight at a
time, followed by a loop for the rest."""

from rushlight.jit._graph_constants import _blocks, _constant
from rushlight.jit._graph_edits import own

__all__ = ["_jit_pass_loop_unrolling"]

_AT_A_TIME = 8
_LARGEST_BODY = 32
_MOST_TURNS = 64


def _jit_pass_loop_unrolling(graph):
    """Write out turns of the innermost loops with bodies that are not large."""
    own(graph)
    for block in list(_blocks(graph)):
        for node in list(block._nodes):
            if node._kind == "prim::Loop" and _may_unroll(node):
                _unroll(graph, node)


def _may_unroll(node):
    body = node._blocks[0]
    inside = [n for block in _blocks(body) for n in block._nodes]
    always = _constant(node._inputs[1]) == (True,) and _constant(body._outputs[0]) == (True,)
    return always and len(inside) <= _LARGEST_BODY and all(n._kind != "prim::Loop" for n in inside)


def _unroll(graph, node):
    turns = _constant(node._inputs[0])
    with graph.insert_point_guard(node):
        if turns is not None and turns[0] < _MOST_TURNS:
            values = node._inputs[2:]
            for turn in range(max(turns[0], 0)):
                values = _turn(graph, node._blocks[0], graph.insertConstant(turn), values)
        else:
            values = _by_eight(graph, node)
    for old, new in zip(node._outputs, values, strict=True):
        old.replaceAllUsesWith(new)
    node.destroy()


def _turn(graph, body, number, values):
    """Insert the operations of one turn; what it hands on."""
    known = dict(zip(body._inputs, (number, *values), strict=True))
    for inner in body._nodes:
        made = graph.createClone(inner, lambda value: known.get(value, value))
        graph.insertNode(made)
        known.update(zip(inner._outputs, made._outputs, strict=True))
    return [known.get(value, value) for value in body._outputs[1:]]


def _by_eight(graph, node):
    body, turns = node._blocks[0], node._inputs[0]
    eight = graph.insertConstant(_AT_A_TIME)
    rounds = _number(graph, "aten::floordiv", turns, eight)
    done = _number(graph, "aten::mul", rounds, eight)
    counted = bool(body._inputs[0].uses())
    main = _loop(graph, node, rounds, node._inputs[2:])
    inner = main._blocks[0]
    with graph.insert_point_guard(inner):
        values = inner._inputs[1:]
        base = _number(graph, "aten::mul", inner._inputs[0], eight) if counted else inner._inputs[0]
        for turn in range(_AT_A_TIME):
            number = base
            if counted:
                number = _number(graph, "aten::add", base, graph.insertConstant(turn))
            values = _turn(graph, body, number, values)
        inner._outputs = [graph.insertConstant(True), *values]
    rest = _loop(graph, node, _number(graph, "aten::sub", turns, done), main._outputs)
    inner = rest._blocks[0]
    with graph.insert_point_guard(inner):
        number = _number(graph, "aten::add", inner._inputs[0], done) if counted else inner._inputs[0]
        values = _turn(graph, body, number, inner._inputs[1:])
        inner._outputs = [graph.insertConstant(True), *values]
    return rest._outputs


def _number(graph, kind, left, right):
    node = graph.insertNode(graph.create(kind, [left, right]))
    node._outputs[0]._type = node._outputs[0]._annotation = "int"
    return node._outputs[0]


def _loop(graph, like, turns, values):
    """A loop with an empty body, which carries what another one does."""
    node = graph.create("prim::Loop", [turns, like._inputs[1], *values], len(like._outputs))
    graph.insertNode(node)
    for new, old in zip(node._outputs, like._outputs, strict=True):
        new.copyMetadata(old)
    body = node.addBlock()
    own(node._block)
    for value in like._blocks[0]._inputs:
        body.addInput().copyMetadata(value)
    return node
