"""Rprop: step sizes that grow while the sign of the gradient stays and shrink when it changes."""

from __future__ import annotations

import rushlight
from rushlight.optim._functional import rprop
from rushlight.optim._per_parameter import _new_step, _PerParameter, _zeros
from rushlight.optim.optimizer import _check_learning_rate, _check_range, _number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rushlight import Tensor
    from rushlight.optim._shared import ParamsT

__all__ = ["Rprop", "rprop"]


class Rprop(_PerParameter):
    """Resilient backpropagation (Riedmiller and Braun 1993), for full batches."""

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        _check_learning_rate(lr)
        _check_range("eta values", f"{etas[0]}, {etas[1]}", 0.0 < etas[0] < 1.0 < etas[1])
        defaults = {
            "lr": lr,
            "etas": etas,
            "step_sizes": step_sizes,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    _fused_rule = "rprop"
    _fused_states = "prev", "step_size"

    def _start(self, group, p, state):
        lr = _number(group["lr"])
        state["step"] = _new_step()
        state["prev"] = _zeros(p)
        state["step_size"] = rushlight.full_like(p, complex(lr, lr) if p.is_complex() else lr)

    def _fused_numbers(self, group, states):
        return [*group["etas"], *group["step_sizes"]], []

    def _update(self, group, p, grad, state):
        shrink, grow = group["etas"]
        state["step"] += 1
        agreement = grad.mul(state["prev"]).sign()
        factor = rushlight.ones_like(agreement)
        factor = factor.masked_fill(agreement > 0, grow).masked_fill(agreement < 0, shrink)
        state["step_size"].mul_(factor).clamp_(*group["step_sizes"])
        # After a change of sign the parameter stays for one step.
        grad = grad.masked_fill(agreement < 0, 0)
        p.addcmul_(grad.sign(), state["step_size"], value=-1)
        state["prev"].copy_(grad)
