"""Fake values of all nodes, without computing anything."""

import rushlight as torch
from rushlight import fx
from rushlight._subclasses.fake_tensor import FakeTensorMode
from rushlight.fx.node import map_aggregate

__all__ = ["FakeTensorProp"]


class FakeTensorProp(fx.Interpreter):
    """Runs a module on fake tensors, and keeps each value in ``node.meta["val"]``."""

    def __init__(self, module, mode=None):
        super().__init__(module)
        self._mode = FakeTensorMode(allow_non_fake_inputs=True) if mode is None else mode

    def run_node(self, n):
        result = super().run_node(n)
        held = map_aggregate(result, lambda v: v if isinstance(v, (torch.Tensor, int, float, bool)) else None)
        if held is not None:
            n.meta["val"] = held
        return result

    def propagate(self, *args):
        """Run on fakes of these inputs."""
        return self.propagate_dont_convert_inputs(
            *(self._mode.from_tensor(a) if isinstance(a, torch.Tensor) else a for a in args)
        )

    def propagate_dont_convert_inputs(self, *args):
        with self._mode:
            return super().run(*args)
