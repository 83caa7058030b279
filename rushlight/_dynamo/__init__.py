"""Graph capture for `torch.compile`: a function runs once on tensors without data, and the operators it calls
become a graph; Python around them is checked before each later call. docs/compile.md tells the rules.
"""

from rushlight._dynamo import config, exc
from rushlight._dynamo.backends import list_backends, lookup_backend, register_backend
from rushlight._dynamo.eval_frame import (
    OptimizedModule,
    is_dynamo_supported,
    is_inductor_supported,
    optimize,
    reset,
)
from rushlight._dynamo.explain import ExplainOutput, explain

__all__ = [
    "ExplainOutput",
    "OptimizedModule",
    "allow_in_graph",
    "assume_constant_result",
    "config",
    "disable",
    "disallow_in_graph",
    "exc",
    "explain",
    "forbid_in_graph",
    "graph_break",
    "is_compiling",
    "is_dynamo_supported",
    "is_inductor_supported",
    "list_backends",
    "lookup_backend",
    "mark_dynamic",
    "mark_static",
    "mark_static_address",
    "mark_unbacked",
    "maybe_mark_dynamic",
    "optimize",
    "register_backend",
    "reset",
    "run",
]

__capture__ = "skip"  # Note [Capture marks]


def _same(fn):
    """Gives back what it decorates."""
    return fn


allow_in_graph = assume_constant_result = nonstrict_trace = substitute_in_graph = run = _same


def disable(fn=None, recursive=True, *, reason=None, wrapping=True):
    """Keep a function out of graphs; see `torch.compiler.disable`."""
    from rushlight import compiler

    return compiler.disable(fn, recursive, reason=reason)


disallow_in_graph = forbid_in_graph = disable


def _disable_dynamo(fn=None, recursive=True):
    """`disable`, under the name that `torch` has for it."""
    return disable(fn, recursive)


def is_compiling():
    from rushlight import compiler

    return compiler.is_compiling()


def graph_break(msg=""):
    """No graph goes beyond this call: what contains it runs as it is written."""
    from rushlight._dynamo._capture import capturing

    if capturing() is not None:
        capturing().observer.interrupt(msg or "the program asks for a graph break")


def reset_code_caches():
    """Forget all graphs."""
    reset()


def mark_static_address(t, guard=True):
    """Accepted; addresses of tensors do not matter here."""


def _mark(tensor, index, dynamic):
    from rushlight._dynamo._dynamic import mark

    mark(tensor, [index] if isinstance(index, int) else index, dynamic)


def mark_dynamic(t, index, *, hint_override=None, min=None, max=None, specialize_on=None):
    """Have the graph of a call with this tensor leave a dimension's size open, if the program lets it."""
    _mark(t, index, True)


def mark_unbacked(t, index, hint_override=None, strict=False, specialize_on=None):
    """The same as mark_dynamic."""
    _mark(t, index, True)


def maybe_mark_dynamic(t, index):
    """The same as mark_dynamic."""
    _mark(t, index, True)


def mark_static(t, index=None):
    """Have graphs be for one size of a dimension, or of all."""
    _mark(t, range(t.dim()) if index is None else index, False)
