"""Several small products by one matrix become one larger product, and sums of products one product.

Programs that run a layer once per step, such as unrolled recurrent networks, multiply few rows at a time; and
the gradient of the layer's weight is the sum of as many products, each as large as the weight. Sums are then
taken in another order, so the last digits may differ.
"""

import operator

import rushlight as torch
from rushlight.fx import Node

from ._passes import has_effects, remove_dead

__all__ = ["batch_products"]

aten = torch.ops.aten  # type: ignore[attr-defined]
_MOST_ROWS = 128  # of one product: larger ones gain nothing
_FEWEST = 4


def batch_products(graph):
    """Batch what can be batched in a graph without effects."""
    if any(n.op == "call_function" and has_effects(n) for n in graph.nodes):
        return
    joined: dict = {}
    if _batch_sums(graph, joined):
        _sort(graph)
    keys = {_key(node): None for node in graph.nodes if node.op == "call_function"}
    for key in keys:
        nodes = [n for n in graph.nodes if n.op == "call_function" and _key(n) == key]
        if key is not None and len(nodes) >= _FEWEST and _batch_levels(graph, nodes, joined):
            _sort(graph)  # what depends on what is another for the next


def _call(graph, before, target, args, shape, dtype):
    with graph.inserting_before(before):
        node = graph.call_function(target, args)
    node.meta["val"] = torch.empty(shape, dtype=dtype, device="meta")
    return node


def _join(graph, before, nodes, joined):
    """The rows of several matrices below each other."""
    made = joined.get(tuple(nodes))
    if made is None or not made.users:
        first = nodes[0].meta["val"]
        shape = (sum(n.meta["val"].shape[0] for n in nodes), *first.shape[1:])
        made = joined[tuple(nodes)] = _call(
            graph, before, aten.cat.default, (list(nodes), 0), shape, first.dtype
        )
    return made


# --- products by one matrix ----------------------------------------------------------------------------


def _rows_at(target):
    """The position of the argument whose rows a product takes one by one; None for other operators."""
    if target is aten.addmm.default:
        return 1
    return 0 if target in (aten.mm.default, aten.linear.default) else None


def _key(node):
    """What products have in common that may be one; None for other nodes."""
    at = _rows_at(node.target)
    if at is None or node.kwargs:
        return None
    rows = node.args[at].meta["val"]
    others = (*node.args[:at], None, *node.args[at + 1 :])
    if rows.dim() != 2 or rows.shape[0] > _MOST_ROWS or node.meta["val"].dim() != 2:
        return None
    if at == 1 and node.args[0].meta["val"].dim() != 1:
        return None
    return node.target, others, rows.shape[1], rows.dtype


def _batch_levels(graph, nodes, joined):
    """Batch those of the products by one matrix that do not depend on each other."""
    by_level: dict = {}
    for node, level in _levels(graph, set(nodes)).items():
        by_level.setdefault(level, []).append(node)
    batches = [found for found in by_level.values() if len(found) >= _FEWEST]
    for found in batches:
        _batch(graph, found, joined)
    return bool(batches)


def _levels(graph, nodes):
    """How many others of the nodes each one depends on, one behind the other."""
    level: dict = {}
    for node in graph.nodes:
        below = max((level[n] for n in node.all_input_nodes), default=0)
        level[node] = below + (node in nodes)
    return {node: level[node] for node in level if node in nodes}


def _batch(graph, nodes, joined):
    at = _rows_at(nodes[0].target)
    value, end = nodes[0].meta["val"], graph.output_node()
    together = _join(graph, end, [n.args[at] for n in nodes], joined)
    shape = (together.meta["val"].shape[0], value.shape[1])
    arguments = (*nodes[0].args[:at], together, *nodes[0].args[at + 1 :])
    product = _call(graph, end, nodes[0].target, arguments, shape, value.dtype)
    sizes = [n.meta["val"].shape[0] for n in nodes]
    parts = _call(graph, end, aten.split_with_sizes.default, (product, sizes, 0), shape, value.dtype)
    parts.meta["val"] = [n.meta["val"] for n in nodes]
    for i, node in enumerate(nodes):
        with graph.inserting_before(end):
            part = graph.call_function(operator.getitem, (parts, i))
        part.meta["val"] = node.meta["val"]
        node.replace_all_uses_with(part)


# --- sums of products ----------------------------------------------------------------------------------


def _is_sum(node):
    return node.target is aten.add.Tensor and not node.kwargs and all(isinstance(a, Node) for a in node.args)


def _terms(node):
    """The terms of a tree of sums, whose parts nobody else uses."""
    terms, pending = [], [node]
    while pending:
        part = pending.pop()
        inner = part is node or (len(part.users) == 1 and part.meta["val"].shape == node.meta["val"].shape)
        if inner and _is_sum(part):
            pending += reversed(part.args)
        else:
            terms.append(part)
    return terms


def _kind(term):
    """What terms have in common that may be one; None for other terms."""
    value = term.meta["val"]
    if not value.dtype.is_floating_point or len(term.users) != 1:
        return None
    if term.target is aten.mm.default and term.args[0].target is aten.t.default:
        rows = term.args[0].args[0].meta["val"]
        return (term.target, rows.dtype, value.shape) if rows.shape[0] <= _MOST_ROWS else None
    if term.target is aten.sum.dim_IntList and len(term.args) == 3 and not term.kwargs:
        rows = term.args[0].meta["val"]
        small = rows.dim() == 2 and rows.shape[0] <= _MOST_ROWS
        return (term.target, rows.dtype, value.shape) if small and list(term.args[1]) == [0] else None
    if term.target is aten.embedding_dense_backward.default and not term.args[4]:
        return (term.target, *term.args[2:], value.dtype) if term.args[1].meta["val"].dim() == 1 else None
    return None


def _batch_sums(graph, joined):
    changed = False
    for root in reversed(list(graph.nodes)):
        if root.op != "call_function" or not _is_sum(root) or not root.users:
            continue
        if len(root.users) == 1 and _is_sum(next(iter(root.users))):
            continue  # part of a larger one
        terms = _terms(root)
        groups: dict = {}
        for term in terms:
            if (kind := _kind(term)) is not None:
                groups.setdefault(kind, []).append(term)
        groups = {kind: found for kind, found in groups.items() if len(found) >= _FEWEST}
        if groups:
            _replace_sum(graph, root, terms, groups.values(), joined)
            changed = True
    return changed


def _replace_sum(graph, root, terms, groups, joined):
    batched = {term for group in groups for term in group}
    parts = [t for t in terms if t not in batched] + [_one_term(graph, group, joined) for group in groups]
    value, end, total = root.meta["val"], graph.output_node(), parts[0]
    for part in parts[1:]:
        total = _call(graph, end, aten.add.Tensor, (total, part), value.shape, value.dtype)
    root.replace_all_uses_with(total)


def _one_term(graph, group, joined):
    first, end = group[0], graph.output_node()
    value = first.meta["val"]
    if first.target is aten.mm.default:
        left = _join(graph, end, [t.args[0].args[0] for t in group], joined)
        right = _join(graph, end, [t.args[1] for t in group], joined)
        turned = _call(graph, end, aten.t.default, (left,), left.meta["val"].shape[::-1], value.dtype)
        return _call(graph, end, first.target, (turned, right), value.shape, value.dtype)
    joins = [_join(graph, end, [t.args[i] for t in group], joined) for i in range(1 + (len(first.args) == 5))]
    return _call(graph, end, first.target, (*joins, *first.args[len(joins) :]), value.shape, value.dtype)


def _sort(graph):
    """Each node behind what it uses, and otherwise as before; nodes without use go."""
    remove_dead(graph)
    order: list = []
    done = {n for n in graph.nodes if n.op in ("placeholder", "output")}
    for root in [n for n in graph.nodes if n.op == "call_function" and n.users]:
        pending = [root]
        while pending:
            node = pending[-1]
            missing = [n for n in node.all_input_nodes if n not in done]
            if missing and node not in done:
                pending += missing
                continue
            pending.pop()
            if node not in done:
                done.add(node)
                order.append(node)
    for node in order:
        graph.output_node().prepend(node)
