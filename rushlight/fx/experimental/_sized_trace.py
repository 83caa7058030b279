"""`make_fx(tracing_mode="symbolic")`: a graph that computes with the sizes of its arguments.

Sizes are plain numbers while a function runs, so it is traced at several of them, as `torch.export` does
(`rushlight.export._dynamics`). Equal sizes change together, as in PyTorch; integers among the arguments
change alone. What the function allows only as it is, and sizes of one and zero, stay numbers of the graph.
"""

import math

import rushlight as torch
from rushlight.utils import _pytree as pytree


class _Called(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def trace(function, args, traced_at, symbolic=True):
    """The module of a function at all sizes; ``traced_at(make inputs, numbers)`` traces it once, on fakes.

    Numbers that depend on its data are symbols also where the sizes of arguments are not (``symbolic``)."""
    from rushlight.export._data import DataTraces
    from rushlight.export._dynamics import Dynamics
    from rushlight.export._numeric import Computation
    from rushlight.export._settled import finish
    from rushlight.export._trace import Trace, _is_of_numbers, fake_inputs
    from rushlight.export.dynamic_shapes import Place, Symbol

    leaves, spec = pytree.tree_flatten(args)
    symbols: dict = {}
    places = []
    for i, leaf in enumerate(leaves):
        for name, dim, size in _numbers_of(i, leaf) if symbolic else ():
            symbols.setdefault(name, Symbol(name, size, 2, math.inf, False, given=False, asked_lower=2))
            places.append(Place(i, dim, name))
    modules = {}

    def one(sizes, numbers, **_):
        module = traced_at(lambda fakes: fake_inputs(fakes, leaves, places, sizes), numbers)
        attributes = [n.target for n in module.graph.nodes if n.op == "get_attr" and "region" not in n.meta]
        constants = {name: getattr(module, name) for name in attributes}
        for node in module.graph.nodes:
            if node.op == "get_attr" and _is_of_numbers(constants.get(node.target)):
                node.meta["constant"] = constants[node.target]
        made = Trace(module.graph, [], constants, numbers=numbers)
        modules[id(made)] = module, made
        return made

    traces = DataTraces(one, symbols)
    first = traces.first(
        {name: symbol.value for name, symbol in symbols.items()}
    )  # errors are the function's
    symbols |= traces.symbols()
    if not symbols:
        return modules[id(first)][0]
    run = _Called(lambda *given: function(*pytree.tree_unflatten(list(given), spec)))
    flat = pytree.tree_structure((tuple(leaves), {}))
    dynamics = Dynamics(traces, symbols, places, Computation(run, leaves, flat, places))
    found, planned, *_ = dynamics.settle()
    finish(found, planned, dynamics)
    module = modules[id(found)][0]
    module.recompile()
    return module


def _numbers_of(i, leaf):
    """(symbol, dimension, number) of what may change in an argument: its sizes, or the integer that it is."""
    if isinstance(leaf, torch.Tensor):
        return [(f"s{size}", d, size) for d, size in enumerate(leaf.shape) if size > 1]
    return [(f"i{i}", None, leaf)] if type(leaf) is int and leaf > 1 else []
