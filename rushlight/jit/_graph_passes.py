"""Passes of `torch._C` over graphs of scripts."""

from rushlight import ops
from rushlight.jit._compilation_unit import CompilationUnit
from rushlight.jit._graph_inline import inlined_graph_of
from rushlight.jit._graph_source import source_of
from rushlight.jit._script import ScriptFunction

__all__ = [
    "_create_function_from_graph",
    "_jit_interpret_graph",
    "_jit_pass_canonicalize",
    "_jit_pass_dce",
    "_jit_pass_inline",
]


def _create_function_from_graph(qualname, graph):
    """A script of a graph: the one that it shows, or one that is written from it."""
    if graph.unit is None:
        unit = CompilationUnit(source_of(qualname.rpartition(".")[2], graph))
        return unit.get_functions()[0]
    module = graph.module()
    return ScriptFunction(graph.unit) if module is None else module


def _jit_interpret_graph(graph, inputs):
    """What a graph gives for these inputs."""
    return _create_function_from_graph("forward", graph)(*inputs)


def _jit_pass_inline(graph):
    """Write out the scripts that a script calls."""
    if graph.unit is not None:
        made = inlined_graph_of(graph.unit, graph.module())
        graph._inputs[:], graph._nodes[:], graph._outputs[:] = made._inputs, made._nodes, made._outputs


def _jit_pass_canonicalize(graph, keep_unique_names=True):
    """A copy whose values are numbered by their places, but for those of the program's own names unless
    these shall go, too."""
    made = graph.copy()
    for number, value in enumerate(made._values()):
        if value.debugName().isdigit() or not keep_unique_names:
            value.setDebugName(str(number))
    return made


def _jit_pass_dce(graph):
    """Remove the operations whose results nothing uses, if they change nothing else."""
    _sweep(graph, set())


def _sweep(block, used):
    used.update(block._outputs)
    kept = []
    for node in reversed(block._nodes):
        if used.isdisjoint(node._outputs) and not _has_effect(node):
            for value in node._inputs:
                value._uses.remove(node)
            continue
        for inner in node._blocks:
            _sweep(inner, used)
        used.update(node._inputs)
        kept.append(node)
    block._nodes[:] = reversed(kept)


_PURE = frozenset(
    f"prim::{kind}"
    for kind in """Constant ListConstruct TupleConstruct DictConstruct ListUnpack TupleUnpack TupleIndex
    GetAttr NumToTensor isinstance shape dtype device profile""".split()
)
# Of lists, texts and numbers, which no table has.
_PLAIN = frozenset(
    f"aten::{kind}"
    for kind in "len __getitem__ __contains__ keys values items Int Float Bool str ord chr tensor".split()
)


def _has_effect(node):
    """Whether an operation does more than give its results."""
    if node._blocks:
        return any(_has_effect(inner) for block in node._blocks for inner in block._nodes)
    space, _, name = node.kind().partition("::")
    if space == "prim":
        return node.kind() not in _PURE
    if node.kind() in _PLAIN:
        return False
    packet = getattr(getattr(ops, space, None), name, None)
    if packet is None or not hasattr(packet, "overloads"):
        return True
    schemas = [getattr(packet, overload)._schema for overload in packet.overloads()]
    return any(a.alias_info and a.alias_info.is_write and not a.is_out for s in schemas for a in s.arguments)
