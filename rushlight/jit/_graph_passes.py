"""Passes of `torch._C` over graphs of scripts."""

from rushlight.jit._script import ScriptFunction

__all__ = ["_create_function_from_graph"]


def _create_function_from_graph(qualname, graph):
    """A script of a graph."""
    if graph.unit is None:
        raise RuntimeError(f"{qualname}: the graph is not that of a script")
    module = graph.module and graph.module()
    return ScriptFunction(graph.unit) if module is None else module
