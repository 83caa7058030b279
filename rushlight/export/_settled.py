"""A trace in which nodes compute the numbers that change with the sizes."""

import itertools
from typing import Any

import rushlight as torch
from rushlight._higher_order_ops._regions import put
from rushlight._subclasses.fake_tensor import FakeTensorMode

from ._data import describe_numbers
from ._reals import whole
from ._sizes import Builder

aten = torch.ops.aten  # type: ignore[attr-defined]


def finish(trace, planned, dynamics):
    """Let nodes compute what is planned: (node, index of the leaf, what it is of the sizes)."""
    builder = Builder(trace.graph, dynamics.source_of)
    order = {node: i for i, node in enumerate(trace.graph.nodes)}

    def user(node):
        """Where a number of a node is wanted: a tensor of numbers is made where the first reads it."""
        return min(node.users, key=order.__getitem__) if _is_tensor(node) else node

    planned = [item for item in planned if item[0].users or not _is_tensor(item[0])]
    planned.sort(key=lambda item: order[user(item[0])])  # stable: a number is computed for the first
    for node, items in itertools.groupby(planned, key=lambda item: item[0]):
        if _is_tensor(node):
            _make(
                trace,
                node,
                {i: builder.build(whole(number), user(node)) for _, i, number in items},
                user(node),
            )
            continue
        found = list(items)  # a value of a function that becomes a node moves those behind it
        for _, i, number in reversed(found) if "region" in node.meta else found:
            put(node, i, builder.build(number, node))
    describe_numbers(trace, builder.sources)


def _is_tensor(node):
    return "constant" in node.meta


def _make(trace, node, numbers, before):
    """A tensor of these numbers in place of a constant, of which they are some."""
    graph, constant = trace.graph, node.meta["constant"]
    how = {"dtype": constant.dtype, "layout": constant.layout, "device": constant.device}
    fakes = FakeTensorMode()

    def call(target, *args, shape, **kwargs):
        made = graph.call_function(target, args, kwargs)
        with fakes:
            made.meta["val"] = torch.empty(shape, dtype=constant.dtype, device=constant.device)
        return made

    with graph.inserting_before(before):
        values = [numbers.get(i, value) for i, value in enumerate(constant.flatten().tolist())]
        parts = [call(aten.scalar_tensor.default, value, shape=(), **how) for value in values]
        made = parts[0]
        if constant.dim():
            made = call(aten.stack.default, parts, shape=(len(parts),))
        if constant.dim() > 1:
            made = call(aten.view.default, made, list(constant.shape), shape=constant.shape)
    node.replace_all_uses_with(made)
    if node.op == "get_attr":
        graph.erase_node(node)
    else:
        trace.replaced.append(node)


def forget_replaced(trace):
    """Inputs of the graph that stood for tensors which nodes make now are none any more."""
    for node in trace.replaced:
        at = [n for n in trace.graph.nodes if n.op == "placeholder"].index(node)
        held: Any = trace.held.pop(at)
        trace.constants.pop(held.target, None)
        del trace.signature.input_specs[at]
        trace.graph.erase_node(node)
    trace.replaced = []
