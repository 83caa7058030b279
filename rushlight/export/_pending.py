"""Programs without views whose conjugation or negation is pending: a file's tensors hold their numbers."""

import copy

import rushlight as torch
from rushlight import fx
from rushlight._higher_order_ops._regions import module_of

from ._align import writes

aten = torch.ops.aten  # type: ignore[attr-defined]
_COMPUTED = {aten._conj.default: aten.conj_physical.default, aten._neg_view.default: aten.neg.default}


def without_pending(program):
    """The same program, in which each such view is computed where it was made.

    Where the memory that it shows is written to, the writes become values first."""
    from ._decompose import decompose

    views = [node for node in program.graph.nodes if node.target in _COMPUTED]
    if not views:
        return program
    if any(_storage(node) in map(_storage, views) for node in program.graph.nodes if writes(node)):
        # Layers are one operator again where writes became values; a file holds their parts.
        program = decompose(decompose(program, {}), {}, functional=False)
    made, graph = copy.copy(program), fx.Graph()
    graph.output(graph.graph_copy(program.graph, {}))
    compute_pending(graph)
    made.graph_module = module_of(graph)
    return made


def compute_pending(graph):
    """Compute each such view of a graph that writes to none."""
    for node in graph.nodes:
        if node.op == "call_function":
            node.target = _COMPUTED.get(node.target, node.target)


def _storage(node):
    value = node.meta.get("val")
    return value.untyped_storage()._cdata if isinstance(value, torch.Tensor) else None
