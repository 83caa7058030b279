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
    """``explain(f)(*args)`` captures one call, and tells what came of it.

    Nothing runs, unless the program breaks: then it runs once, and its modules are captured."""
    f = getattr(f, "_torchdynamo_orig_callable", getattr(f, "_orig_mod", f))

    def inner(*args, **kwargs):
        told = ExplainOutput()
        with config.patch(_keep_captures=True):
            program = _Explained(f, lookup_backend("eager"), told=told)
            try:
                program.compile(args, kwargs)
            except Unsupported as error:
                program.explain_parts(error, args, kwargs)
        return told

    return inner(*extra_args, **extra_kwargs) if extra_args or extra_kwargs else inner


class _Explained(Compiled):
    """A program or one of its parts whose graphs are told of."""

    def __init__(self, function, backend, *, told=None, parts=None, **kwargs):
        super().__init__(function, backend, parts=parts, **kwargs)
        self.told = told if parts is None else parts.program().told

    def compile(self, args, kwargs):
        entry, told = super().compile(args, kwargs), self.told
        operators = [n.target for n in entry.captured.graph.nodes if n.op == "call_function"]
        told.graphs.append(entry.captured.module)
        told.ops_per_graph.append(operators)
        told.graph_count += 1
        told.op_count += len(operators)
        told.out_guards += entry.guards.reasons
        return entry

    def explain_parts(self, error, args, kwargs):
        """Run a program that breaks, and its modules through the graphs that they have instead."""
        try:
            self._fall_back(error, args, kwargs, breaks=True)
        finally:
            self.parts.clear()

    def _fall_back(self, error, args, kwargs, breaks=False):
        if str(error) not in self.told.break_reasons:  # the same place ends a part and what is around it
            self.told.break_reasons.append(str(error))
            self.told.graph_break_count += 1
        return super()._fall_back(error, args, kwargs, breaks)
