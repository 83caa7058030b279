"""Passes that take tuples apart: what is taken out of one is used as it was put in."""

__all__ = ["_jit_pass_lower_all_tuples", "_jit_pass_lower_simple_tuples"]


def _jit_pass_lower_simple_tuples(graph):
    """Use the parts of tuples in place of what is unpacked from them; tuples that nothing uses go."""
    parts = {}
    for block in _blocks(graph):
        for node in block._nodes:
            _take_apart(node, parts)
    if parts:
        for block in _blocks(graph):
            block._outputs[:] = [_part(parts, value) for value in block._outputs]
            for node in block._nodes:
                _replace(node, parts)
    _drop(graph)


def _jit_pass_lower_all_tuples(graph):
    """The same; a graph that gives tuples gives their parts."""
    _jit_pass_lower_simple_tuples(graph)
    flat: list = []
    for value in graph._outputs:
        _flatten(value, flat)
    graph._outputs[:] = flat
    _drop(graph)


_TUPLES = ("prim::TupleConstruct", "prim::NamedTupleConstruct")


def _made(value):
    """The node that makes a tuple; None of other values."""
    node = value._node
    return node if node is not None and node.kind() in _TUPLES else None


def _take_apart(node, parts):
    if node.kind() == "prim::TupleUnpack" and (made := _made(_part(parts, node._inputs[0]))) is not None:
        if len(made._inputs) == len(node._outputs):
            parts.update(zip(node._outputs, made._inputs, strict=True))
    elif node.kind() == "prim::TupleIndex" and (made := _made(_part(parts, node._inputs[0]))) is not None:
        index = node._inputs[1].toIValue()
        if type(index) is int and -len(made._inputs) <= index < len(made._inputs):
            parts[node._outputs[0]] = made._inputs[index]


def _part(parts, value):
    while value in parts:
        value = parts[value]
    return value


def _replace(node, parts):
    for i, value in enumerate(node._inputs):
        if value in parts:
            value._uses.remove(node)
            node._inputs[i] = _part(parts, value)
            node._inputs[i]._uses.append(node)


def _flatten(value, flat):
    made = _made(value)
    for part in made._inputs if made is not None else ():
        _flatten(part, flat)
    if made is None:
        flat.append(value)


def _drop(graph):
    """Drop the nodes that make or take apart tuples which nothing uses."""
    blocks = list(_blocks(graph))
    used = {value for block in blocks for value in block._outputs}
    used.update(value for block in blocks for node in block._nodes for value in node._inputs)
    for block in blocks:
        for node in [
            n for n in block._nodes if n.kind() in (*_TUPLES, "prim::TupleUnpack", "prim::TupleIndex")
        ]:
            if used.isdisjoint(node._outputs):
                for value in node._inputs:
                    value._uses.remove(node)
                block._nodes.remove(node)
                _drop(graph)  # what it was made of may be such a tuple
                return


def _blocks(block):
    yield block
    for node in block._nodes:
        for inner in node._blocks:
            yield from _blocks(inner)
