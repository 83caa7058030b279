"""Rprop: step sizes that grow while the sign of the gradient stays and shrink when it changes."""

from __future__ import annotations

import rushlight
from rushlight import Tensor
from rushlight.optim._functional import rprop
from rushlight.optim._per_parameter import _new_step, _PerParameter, _zeros
from rushlight.optim._shared import ParamsT
from rushlight.optim.optimizer import _check_learning_rate, _check_range, _number

__all__ = ["Rprop", "rprop"]


class Rprop(_PerParameter):
    """Resilient backpropagation (Riedmiller and Braun 1993): only signs of gradients count; for full batches.

    Args:
        params (iterable): tensors, (name, tensor) pairs, or dicts that each describe a group.
        lr (float or Tensor): learning rate.
        etas (two floats): factors of a step whose gradient changed its sign, and kept it.
        step_sizes (two floats): least and largest step.
        capturable (bool): whether the step may be recorded in a CUDA graph.
        foreach (bool, optional): whether all parameters are updated by operators on lists.
        maximize (bool): whether steps go up instead of down.
        differentiable (bool): whether gradients flow through the step; slower.

    Formula: s = clip(s * eta, step_sizes), eta by the sign of g * last g; p -= s * sign(g), not where it
        changed

    Raises: ValueError where an option is out of its range or there are no parameters.

    Example:
        >>> w = torch.nn.Parameter(torch.tensor([1.0, -2.0]))
        >>> optimizer = torch.optim.Rprop([w], lr=0.1)
        >>> for _ in range(3):
        ...     optimizer.zero_grad()
        ...     (w**2).sum().backward()
        ...     optimizer.step()
        >>> w.data
        tensor([ 0.6360, -1.6360])
    """

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
