"""Simpler graphs that give the same, to the last bit: views are taken once, and not there and back."""

import rushlight as torch
from rushlight._operators.traits import gives_a_view
from rushlight._ops import OpOverload
from rushlight.fx import Node

from ._passes import remove_dead

__all__ = ["simplify"]

aten = torch.ops.aten  # type: ignore[attr-defined]


def simplify(graph):
    """Leave out views that others give already, and dimensions that are kept to be dropped."""
    if any(_changes_a_view(n) for n in graph.nodes):
        return
    fixed = {n for n in graph.output_node().all_input_nodes}  # whose identity callers see
    known: dict = {}
    for node in list(graph.nodes):
        if node.op != "call_function":
            continue
        same = _same_as(node, known, fixed)
        if same is not None and (node not in fixed or same.op != "placeholder"):
            node.replace_all_uses_with(same)
        elif node.target is aten.view.default:
            _drop_dimensions(node)
    remove_dead(graph)


def _changes_a_view(node):
    """Whether a node gives a tensor another shape in place: then two views of one kind are not one."""
    return isinstance(node.target, OpOverload) and node.target.traits.reshaping != "none"


def _same_as(node, known, fixed):
    """What gives the same memory as a view, if something does."""
    if not isinstance(node.target, OpOverload) or not gives_a_view(node.target):
        return None
    if not isinstance(node.args[0], Node):
        return None
    source = node.args[0]
    if node.target is aten.t.default and source.target is aten.t.default:
        return source.args[0]
    if node.target is aten.detach.default:
        return None if source in fixed else source
    key = node.target, source, repr(node.args[1:]), repr(node.kwargs)
    first = known.setdefault(key, node)
    return None if first is node or node in fixed else first


def _drop_dimensions(view):
    """sum(x, dims, keepdim=True).view(shape without them): a sum that does not keep them."""
    total = view.args[0]
    if not isinstance(total, Node) or total.target is not aten.sum.dim_IntList or len(total.users) != 1:
        return
    if len(total.args) != 3 or total.kwargs or total.args[2] is not True or not total.args[1]:
        return
    shape, dims = total.meta["val"].shape, {d % total.meta["val"].dim() for d in total.args[1]}
    if tuple(view.meta["val"].shape) != tuple(n for d, n in enumerate(shape) if d not in dims):
        return
    total.args = (*total.args[:2], False)
    total.meta["val"] = view.meta["val"]
    view.replace_all_uses_with(total)
