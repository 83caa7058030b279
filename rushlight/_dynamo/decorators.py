"""What marks functions and tensors for `torch.compile`, at the place where PyTorch has it."""

from rushlight._dynamo import (
    allow_in_graph,
    assume_constant_result,
    disable,
    disallow_in_graph,
    forbid_in_graph,
    mark_dynamic,
    mark_static,
    maybe_mark_dynamic,
)

__all__ = [
    "allow_in_graph", "assume_constant_result", "disable", "disallow_in_graph", "forbid_in_graph",
    "mark_dynamic", "mark_static", "maybe_mark_dynamic",
]  # fmt: skip
