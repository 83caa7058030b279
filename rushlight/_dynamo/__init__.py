"""Names of PyTorch's graph capture that eager programs touch. Nothing is captured here, so decorators give
back what they get, marks are remembered nowhere, and questions are answered with no."""

from rushlight._dynamo import config, exc
from rushlight._dynamo.eval_frame import OptimizedModule, is_dynamo_supported, is_inductor_supported

__all__ = [
    "OptimizedModule",
    "allow_in_graph",
    "assume_constant_result",
    "config",
    "disable",
    "disallow_in_graph",
    "exc",
    "forbid_in_graph",
    "graph_break",
    "is_compiling",
    "is_dynamo_supported",
    "is_inductor_supported",
    "list_backends",
    "mark_dynamic",
    "mark_static",
    "mark_static_address",
    "mark_unbacked",
    "maybe_mark_dynamic",
    "optimize",
    "reset",
    "run",
]


def _same(fn):
    """Gives back what it decorates."""
    return fn


allow_in_graph = assume_constant_result = disallow_in_graph = forbid_in_graph = _same
nonstrict_trace = substitute_in_graph = run = _same


def disable(fn=None, recursive=True, *, reason=None, wrapping=True):
    """Keep a function out of capture."""
    return _same if fn is None else fn


def optimize(*args, **kwargs):
    """A decorator that gives functions back, since nothing is compiled."""
    return _same


def is_compiling():
    return False


def graph_break(msg=""):
    """Nothing to break."""


def reset():
    """No caches."""


def reset_code_caches():
    """No caches."""


def mark_static_address(t, guard=True):
    """Accepted; addresses of tensors do not change here."""


def mark_dynamic(t, index, *, hint_override=None, min=None, max=None, specialize_on=None):
    """Accepted; every size may vary."""


def mark_unbacked(t, index, hint_override=None, strict=False, specialize_on=None):
    """Accepted; every size may vary."""


def maybe_mark_dynamic(t, index):
    """Accepted; every size may vary."""


def mark_static(t, index=None):
    """Accepted; every size may vary."""


def list_backends(exclude_tags=("debug", "experimental")):
    """No compilers."""
    return []
