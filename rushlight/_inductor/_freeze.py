"""What depends on the state of a program alone, such as on its weights, is computed once: it leaves the graph
for another one, which runs again after a write to the state. Note [Frozen state] in src/jit/frozen.h.
"""

import rushlight as torch
from rushlight.fx import Graph

from ._passes import has_effects, storage_of, written_by

__all__ = ["Frozen", "freeze"]

_LARGEST = 1 << 24  # elements of a value that is kept


class Frozen:
    """The graph of the frozen values, and which inputs of the program it takes: the others stay in place."""

    def __init__(self, graph, sources):
        self.graph, self.sources = graph, sources


def freeze(graph, first, sizes_change=False):
    """Split off what depends on the inputs from position `first` on alone, or on none; None if nothing does.

    The graph then takes the inputs that are left, and behind them the frozen values. Where sizes of inputs
    may change, what depends on none stays, for its sizes may.
    """
    placeholders = [n for n in graph.nodes if n.op == "placeholder"]
    touched = {storage_of(target) for node in graph.nodes for target in written_by(node)}
    touched |= {storage_of(n) for n in graph.output_node().all_input_nodes}
    constant = {n: None for n in placeholders[first:] if storage_of(n) not in touched}
    for node in graph.nodes:
        if node.op != "call_function" or (sizes_change and not node.all_input_nodes):
            continue
        if _is_constant(node, constant, touched):
            constant[node] = None
    kept = [n for n in constant if any(user not in constant for user in n.users)]
    if not kept:
        return None
    sources = [i for i, n in enumerate(placeholders) if n in constant]
    frozen = _copy(constant, kept)
    _replace(graph, placeholders[-1] if placeholders else None, constant, kept)
    return Frozen(frozen, sources)


def _is_constant(node, constant, touched):
    if has_effects(node) or any(n not in constant for n in node.all_input_nodes):
        return False
    value = node.meta.get("val")
    tensors = (
        [value] if isinstance(value, torch.Tensor) else value if isinstance(value, (list, tuple)) else [value]
    )
    return all(
        isinstance(t, torch.Tensor) and t.numel() <= _LARGEST and t.untyped_storage()._cdata not in touched
        for t in tensors
    )


def _copy(constant, kept):
    frozen, copies = Graph(), {}
    for node in constant:
        copies[node] = frozen.node_copy(node, copies.__getitem__)
        copies[node].meta["val"] = node.meta["val"]
    frozen.output(tuple(copies[n] for n in kept))
    return frozen


def _replace(graph, last, constant, kept):
    """New inputs behind the last one, in place of the frozen values."""
    for i, node in enumerate(kept):
        with graph.inserting_before(last.next if last is not None else next(iter(graph.nodes))):
            last = graph.placeholder(f"frozen_{i}")
        last.meta["val"] = node.meta["val"]
        node.replace_all_uses_with(last, lambda user: user not in constant)
    for node in reversed(constant):
        graph.erase_node(node)
