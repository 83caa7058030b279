"""What of a graph's tensors is known to be an object of its own."""

from rushlight import ops
from rushlight.jit._graph_passes import _has_effect

__all__ = ["counterpart", "is_fresh", "uses_between"]


def _schemas(kind):
    space, _, name = kind.partition("::")
    packet = getattr(getattr(ops, space, None), name, None) if space == "aten" else None
    names = packet.overloads() if packet is not None and hasattr(packet, "overloads") else ()
    return [getattr(packet, overload)._schema for overload in names]


def is_fresh(value):
    """Whether nothing but this value names what it holds: an operator made it that gives no view, or both
    sides of a choice did, which use it for nothing else."""
    node = value._node
    if node is None:
        return False
    if node.kind() == "prim::If":
        sides = [block._outputs[node._outputs.index(value)] for block in node._blocks]
        inside = zip(sides, node._blocks, strict=True)
        return all(s._node in b._nodes and is_fresh(s) and len(s.uses()) == 1 for s, b in inside)
    if node.kind() in ("prim::ListConstruct", "aten::tensor"):
        return True
    plain = [s for s in _schemas(node.kind()) if all(r.alias_info is None for r in s.returns)]
    named = [s for s in _schemas(node.kind()) if not any(a.is_out for a in s.arguments)]
    return bool(named) and all(s in plain for s in named)


def uses_between(value, first, last):
    """Whether something uses a value behind one node and before another one of the same block."""
    block = last._block
    numbers = {id(node): i for i, node in enumerate(block._nodes)}
    low, high = numbers[id(first)], numbers[id(last)]
    for use in value.uses():
        node = use.user
        while node._block is not None and node._block is not block:
            node = node._block._within
            if node is None:
                break
        if node is not None and not _has_effect(node) and not any(v.uses() for v in node._outputs):
            continue  # what nothing asks for
        number = None if node is None else numbers.get(id(node))
        if number is not None and low < number < high:
            return True
    return False


def counterpart(kind):
    """The operator that computes what one in place writes, or None."""
    if not kind.startswith("aten::") or kind.endswith("__") or not kind.endswith("_"):
        return None
    return kind[:-1] if _schemas(kind[:-1]) else None
