"""Products by a matrix that many products share, or that does not change between runs: the matrix is laid out
beforehand as the kernel wants it, and bounds behind the product become a part of it.

Sums may be taken in another order than by the operators, so the last digits may differ.
"""

import math

import rushlight as torch
from rushlight import _C
from rushlight.fx import Node

from ._convolutions import bounds_of
from ._passes import storage_of, written_by

__all__ = ["pack_products"]

aten = torch.ops.aten  # type: ignore[attr-defined]
_DTYPES = (torch.float32, torch.float64)
_LARGEST = 1 << 24  # elements of a matrix
_LARGEST_OF_OPEN = 1 << 16  # the same where there may be any number of rows
_PANEL = 32  # columns, as in src/cpu/packed_product.h
_FEWEST_USES = 4  # that pay for an order of its own in each run


class _Product:
    """input @ matrix + bias, where the matrix may be the transpose of a weight."""

    def __init__(self, node, at, matrix, turned, bias):
        self.node, self.at, self.matrix, self.turned, self.bias = node, at, matrix, turned, bias

    @property
    def input(self):
        return self.node.args[self.at]  # which may have become another since

    @property
    def key(self):
        return self.matrix, self.turned


def _product(node):
    """A node as a product, or None."""
    if node.op != "call_function" or node.kwargs:
        return None
    args = node.args
    if node.target is aten.linear.default and len(args) in (2, 3):
        found = _Product(node, 0, args[1], True, args[2] if len(args) > 2 else None)
    elif node.target is aten.addmm.default and len(args) == 3:
        found = _Product(node, 1, args[2], False, args[0])
    elif node.target is aten.mm.default:
        found = _Product(node, 0, args[1], False, None)
    else:
        return None
    if found.matrix.target is aten.t.default and not found.turned:
        found.matrix, found.turned = found.matrix.args[0], True
    return found if _fits(found) else None


def _fits(product):
    value, matrix = product.input.meta["val"], product.matrix.meta["val"]
    bias = product.bias.meta["val"] if isinstance(product.bias, Node) else None
    if value.dtype not in _DTYPES or matrix.dtype != value.dtype or matrix.dim() != 2 or not value.dim():
        return False
    columns = product.node.meta["val"].shape[-1]
    if bias is not None and (bias.dim() != 1 or bias.shape[0] != columns or bias.dtype != value.dtype):
        return False
    return 2 <= columns and 2 <= value.shape[-1] and matrix.numel() <= _LARGEST


def _few_rows(product, sizes_change):
    """Whether a product has so few rows that it gains."""
    value, columns = product.input.meta["val"], product.node.meta["val"].shape[-1]
    if sizes_change:  # any number, so that all of its graphs are the same
        return value.shape[-1] * columns <= _LARGEST_OF_OPEN
    return 2 <= value.numel() // value.shape[-1] <= _C._most_packed_rows(value.shape[-1], columns)


def pack_products(graph, first_constant=None, sizes_change=False):
    """Pack the matrices of a graph that records no gradients: of its inputs from a position on, which do not
    change between runs, and those that are used often."""
    products = [p for p in map(_product, graph.nodes) if p is not None and _few_rows(p, sizes_change)]
    placeholders = [n for n in graph.nodes if n.op == "placeholder"]
    constant = set() if first_constant is None else set(placeholders[first_constant:])
    touched = {storage_of(target) for node in graph.nodes for target in written_by(node)}
    groups: dict = {}
    for product in products:
        if storage_of(product.matrix) not in touched:
            groups.setdefault(product.key, []).append(product)
    for (matrix, turned), found in groups.items():
        if matrix in constant or len(found) >= _FEWEST_USES:
            _pack(graph, matrix, turned, found)


def _pack(graph, matrix, turned, products):
    with graph.inserting_before(products[0].node):
        value = matrix.meta["val"]
        source = graph.call_function(aten.t.default, (matrix,)) if turned else matrix
        if turned:
            source.meta["val"] = torch.empty(value.shape[::-1], dtype=value.dtype, device="meta")
        panels = graph.call_function(aten._pack_matrix.default, (source,))
        inner, columns = source.meta["val"].shape
        size = -(-columns // _PANEL) * _PANEL * inner
        panels.meta["val"] = torch.empty(size, dtype=value.dtype, device="meta")
    for product in products:
        _emit(graph, product, panels)


def _emit(graph, product, panels):
    """The product in the packed form, with the bounds behind it where nobody else needs what lies between."""
    node = last = product.node
    low, high = -math.inf, math.inf
    if len(node.users) == 1 and (bounds := bounds_of(user := next(iter(node.users)))) is not None:
        if bounds[0] <= bounds[1] and user.args[0] is node:
            (low, high), last = bounds, user
    with graph.inserting_before(node):
        columns = node.meta["val"].shape[-1]
        made = graph.call_function(
            aten._packed_product.default, (product.input, panels, columns, product.bias, low, high)
        )
    made.meta["val"] = last.meta["val"]
    last.replace_all_uses_with(made)
    for old in (last, node) if last is not node else (node,):
        graph.erase_node(old)
