"""`torch._dynamo.explain`: what compiling a function would give."""

from dataclasses import dataclass, field

from . import config
from ._compiled import Compiled
from .backends import lookup_backend
from .exc import Unsupported

__all__ = ["ExplainOutput", "explain"]


@dataclass
class ExplainOutput:
    """How a call was captured, or why it was not."""

    graphs: list = field(default_factory=list)
    graph_count: int = 0
    graph_break_count: int = 0
    break_reasons: list = field(default_factory=list)
    op_count: int = 0
    ops_per_graph: list = field(default_factory=list)
    out_guards: list = field(default_factory=list)
    compile_times: object = None

    def __str__(self):
        lines = [
            f"Graph Count: {self.graph_count}",
            f"Graph Break Count: {self.graph_break_count}",
            f"Op Count: {self.op_count}",
            "Break Reasons:",
        ]
        lines += [
            f"  Break Reason {i + 1}:\n    Reason: {reason}" for i, reason in enumerate(self.break_reasons)
        ]
        return "\n".join(lines)


def explain(f, *extra_args, **extra_kwargs):
    """``explain(f)(*args)`` captures one call, runs nothing, and tells what came of it."""
    f = getattr(f, "_torchdynamo_orig_callable", getattr(f, "_orig_mod", f))

    def inner(*args, **kwargs):
        told = ExplainOutput()
        try:
            with config.patch(_keep_captures=True):
                entry = Compiled(f, lookup_backend("eager")).compile(args, kwargs)
        except Unsupported as error:
            told.break_reasons, told.graph_break_count = [str(error)], 1
            return told
        operators = [n.target for n in entry.captured.graph.nodes if n.op == "call_function"]
        told.graphs, told.graph_count = [entry.captured.module], 1
        told.op_count, told.ops_per_graph = len(operators), [operators]
        told.out_guards = list(entry.guards.reasons)
        return told

    return inner(*extra_args, **extra_kwargs) if extra_args or extra_kwargs else inner
