"""Shapes, dtypes and layouts of all values, by running the graph once."""

from __future__ import annotations

import traceback
from typing import Any, NamedTuple

import rushlight as torch
from rushlight import fx
from rushlight.fx.node import map_aggregate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rushlight.fx.graph_module import GraphModule
    from rushlight.fx.node import Node

__all__ = ["ShapeProp", "TensorMetadata"]


class TensorMetadata(NamedTuple):
    """What is known of a tensor without its values."""

    shape: torch.Size
    dtype: torch.dtype
    requires_grad: bool
    stride: tuple
    memory_format: torch.memory_format | None
    is_quantized: bool
    qparams: dict[str, Any]


_FORMATS = (torch.contiguous_format, torch.channels_last, torch.channels_last_3d)


def _memory_format(tensor):
    for memory_format in _FORMATS:
        try:
            if tensor.is_contiguous(memory_format=memory_format):
                return memory_format
        except RuntimeError:  # the format asks for another rank
            continue
    return None


def _extract_tensor_metadata(result, include_contiguity=True):
    memory_format = _memory_format(result) if include_contiguity and not result.is_sparse else None
    stride = () if result.is_sparse else result.stride()
    return TensorMetadata(result.shape, result.dtype, result.requires_grad, stride, memory_format, False, {})


class ShapeProp(fx.Interpreter):
    """Runs a module on real or fake values, and keeps each value's kind in ``node.meta``."""

    def __init__(self, gm: GraphModule, fake_mode: Any = None) -> None:
        super().__init__(gm)
        if fake_mode is None:
            from rushlight._subclasses.fake_tensor import FakeTensor

            found = next((p for p in gm.parameters() if isinstance(p, FakeTensor)), None)
            fake_mode = getattr(found, "fake_mode", None)
        self.fake_mode = fake_mode
        self.real_module = self.module

    def run_node(self, n: Node) -> Any:
        try:
            if self.fake_mode is None:
                result = super().run_node(n)
            else:
                with self.fake_mode:
                    result = super().run_node(n)
        except Exception as error:
            traceback.print_exc()
            raise RuntimeError(f"ShapeProp error for: node={n.format_node()} with meta={n.meta}") from error
        found = False

        def describe(value):
            nonlocal found
            if not isinstance(value, torch.Tensor):
                return value
            found = True
            return _extract_tensor_metadata(value)

        meta = map_aggregate(result, describe)
        if found:
            n.meta["tensor_meta"] = meta
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args):
        """Run the module on these inputs."""
        if self.fake_mode is not None:
            args = tuple(self.fake_mode.from_tensor(a) if isinstance(a, torch.Tensor) else a for a in args)
        return super().run(*args)
