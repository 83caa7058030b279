"""From a graph of operators to a function of tensors."""

import logging

import rushlight as torch
from rushlight import _C
from rushlight._dynamo._backward import NoBackward
from rushlight._inductor._codegen import generate
from rushlight._inductor._joint import Joint
from rushlight._inductor._lower import NotLowered, graph_text
from rushlight._inductor._optimize import optimize
from rushlight._inductor._passes import remove_dead

__all__ = ["compile_fx"]

_decisions = logging.getLogger("torch.__inductor")


def compile_fx(module, example_inputs, **options):
    """A function that does what the module's graph says: takes tensors, gives a tuple of them."""
    graph = module.graph
    results = graph.output_node().args[0]
    records = torch.is_grad_enabled() and any(t.requires_grad for t in example_inputs)
    if records and module.meta.get("backward") is not None:
        try:
            return Program(Joint(module, module.meta["backward"]))
        except (NoBackward, NotLowered) as error:
            _decisions.info("operators record themselves one by one: %s", error)
            graph.output_node().args = (results,)
    remove_dead(graph)
    if records or (torch.is_grad_enabled() and _gives_views(graph)):
        return generate(module)  # operators record themselves
    optimize(graph)
    try:
        return Program(graph_text(graph), len(results))
    except NotLowered:
        return generate(module)


class Program:
    """A function of a list of tensors, which a compiled graph runs."""

    _boxed_call = True

    def __init__(self, source, results=None):
        self.joint = source if isinstance(source, Joint) else None
        self.text = source.text if self.joint else source
        self.results = len(source.results) if self.joint else results

    def bind(self, rest, form="l", guards=None):
        """The graph that takes `rest` besides arguments, and gives a tensor, a tuple or a list."""
        more = () if guards is None else (guards,)
        made = _C._CompiledGraph(self.text, self.results, rest, form, *more)
        if self.joint is not None:
            self.joint.connect(made)
        return made

    def __call__(self, inputs):
        return self.bind([]).run(inputs)


def _gives_views(graph):
    """Whether an output shares memory with an input: views know their grad mode."""
    inputs = {_storage(n) for n in graph.nodes if n.op == "placeholder"}
    return any(_storage(n) in inputs for n in graph.output_node().args[0])


def _storage(node):
    return node.meta["val"].untyped_storage()._cdata
