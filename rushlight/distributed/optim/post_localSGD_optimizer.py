"""Steps of each process's own, with models averaged now and then.

Source: Lin et al., "Don't Use Large Mini-Batches, Use Local SGD", ICLR 2020.
"""

from __future__ import annotations

import warnings

from ...optim import Optimizer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["PostLocalSGDOptimizer"]


class PostLocalSGDOptimizer(Optimizer):
    """An optimizer whose steps are followed by `averager.average_parameters`.

    Args:
        optim: the local optimizer.
        averager: a ModelAverager, of `algorithms.model_averaging.averagers`.
    """

    def __init__(self, optim: Any, averager: Any) -> None:
        self.optim, self.averager = optim, averager
        self.param_groups = optim.param_groups

    @property
    def state(self):
        return self.optim.state

    def __repr__(self) -> str:
        return repr(self.optim)

    def state_dict(self) -> dict[str, Any]:
        """The local optimizer's, with the averager's step."""
        return {**self.optim.state_dict(), "step": self.averager.step}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.optim.load_state_dict({k: v for k, v in state_dict.items() if k != "step"})
        if "step" in state_dict:
            self.averager.step = state_dict["step"]
            return
        warnings.warn(
            "Loaded state dict does not contain a step counter for an averager. Setting step counter to 0.",
            stacklevel=2,
        )
        self.averager.step = 0

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        loss = self.optim.step() if closure is None else self.optim.step(closure)
        self.averager.average_parameters(params=self.param_groups)
        return loss

    def zero_grad(self, set_to_none: bool = True) -> None:
        self.optim.zero_grad(set_to_none=set_to_none)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        self.optim.add_param_group(param_group)
