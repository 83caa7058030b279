"""From a graph of operators to a function of tensors."""

import rushlight as torch
from rushlight._inductor._codegen import generate
from rushlight._inductor._fuse import fuse_pointwise
from rushlight._inductor._lower import NotLowered, lower
from rushlight._inductor._passes import remove_dead

__all__ = ["compile_fx"]


def compile_fx(module, example_inputs, **options):
    """A function that does what the module's graph says: takes tensors, gives a tuple of them."""
    graph = module.graph
    remove_dead(graph)
    if torch.is_grad_enabled() and (any(t.requires_grad for t in example_inputs) or _gives_views(graph)):
        return generate(module)  # operators record themselves
    fuse_pointwise(graph)
    try:
        executor = lower(graph)
    except NotLowered:
        return generate(module)

    return _Boxed(executor.run)


class _Boxed:
    """A function of a list of tensors."""

    _boxed_call = True

    def __init__(self, run):
        self.run = run

    def __call__(self, inputs):
        return self.run(inputs)


def _gives_views(graph):
    """Whether an output shares memory with an input: views know their grad mode."""
    inputs = {_storage(n) for n in graph.nodes if n.op == "placeholder"}
    return any(_storage(n) in inputs for n in graph.output_node().args[0])


def _storage(node):
    return node.meta["val"].untyped_storage()._cdata
