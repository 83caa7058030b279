"""How results lie in memory: fused chains walk elements in order, the program's results may lie otherwise."""

import rushlight as torch

__all__ = ["laid_out", "memory_order", "permuted"]

aten = torch.ops.aten  # type: ignore[attr-defined]


def memory_order(value):
    """The dimensions of a tensor as they lie in memory, from the outermost on; None where they are in order,
    or have gaps."""
    if value.is_contiguous():
        return None
    order = sorted(range(value.dim()), key=lambda d: (value.shape[d] != 1, -value.stride(d)))
    return order if value.permute(order).is_contiguous() else None


def permuted(graph, node, order):
    """A view of an operand with the dimensions of the result in this order."""
    value = node.meta["val"]
    if value.dim() == 0:
        return node
    for _ in range(len(order) - value.dim()):
        node, value = graph.call_function(aten.unsqueeze.default, (node, 0)), value.unsqueeze(0)
        node.meta["val"] = value
    node = graph.call_function(aten.permute.default, (node, order))
    node.meta["val"] = value.permute(order)
    return node


def laid_out(graph, node, order, like):
    """What a chain computed in one order of dimensions, as a tensor that lies as the program's does."""
    wanted = memory_order(like)
    steps: list = []
    if wanted != order:
        back = [order.index(d) for d in wanted or range(like.dim())] if order is not None else wanted
        steps.append((aten.permute.default, (back,)))
        steps.append((aten.contiguous.default, ()))
    if wanted is not None:
        steps.append((aten.permute.default, ([wanted.index(d) for d in range(like.dim())],)))
    for target, arguments in steps:
        value = node.meta["val"]
        with graph.inserting_after(node):
            node = graph.call_function(target, (node, *arguments))
        node.meta["val"] = target(value, *arguments)
    return node
