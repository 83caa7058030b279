"""Adamax: Adam with the largest gradient in place of the root mean square."""

from __future__ import annotations

import rushlight
from rushlight import Tensor
from rushlight.optim._functional import adamax
from rushlight.optim._per_parameter import _for_each_step, _new_step, _PerParameter, _zeros
from rushlight.optim._shared import ParamsT
from rushlight.optim.optimizer import _check_betas, _check_learning_rate, _check_range, _number

__all__ = ["Adamax", "adamax"]


class Adamax(_PerParameter):
    """Adamax (Kingma and Ba 2015): Adam whose second moment is a decaying maximum.

    Args:
        params (iterable): tensors, (name, tensor) pairs, or dicts that each describe a group.
        lr (float or Tensor): learning rate.
        betas (two floats): how much of the running means of the gradient and of its square is kept.
        eps (float): added to the divisor.
        weight_decay (float): adds weight_decay * p to the gradient of each parameter p.
        foreach (bool, optional): whether all parameters are updated by operators on lists.
        maximize (bool): whether steps go up instead of down.
        differentiable (bool): whether gradients flow through the step; slower.
        capturable (bool): whether the step may be recorded in a CUDA graph.

    Formula: m = b1 * m + (1 - b1) * g; u = max(b2 * u, abs(g) + eps); at step t p -= lr / (1 - b1**t) * m / u

    Raises: ValueError where an option is out of its range or there are no parameters.

    Example:
        >>> w = torch.nn.Parameter(torch.tensor([1.0, -2.0]))
        >>> optimizer = torch.optim.Adamax([w], lr=0.1)
        >>> for _ in range(3):
        ...     optimizer.zero_grad()
        ...     (w**2).sum().backward()
        ...     optimizer.step()
        >>> w.data
        tensor([ 0.7155, -1.7076])
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 2e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        _check_learning_rate(lr)
        _check_range("epsilon value", eps, 0.0 <= eps)
        _check_betas(betas)
        _check_range("weight_decay value", weight_decay, 0.0 <= weight_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    _fused_rule = "adamax"
    _fused_states = "exp_avg", "exp_inf"

    def _start(self, group, p, state):
        state["step"] = _new_step()
        state["exp_avg"] = _zeros(p)
        state["exp_inf"] = _zeros(p)

    def _fused_numbers(self, group, states):
        lr, (beta1, beta2) = _number(group["lr"]), map(_number, group["betas"])
        return [group["eps"], beta1, beta2], _for_each_step(states, lambda step: [lr / (1 - beta1**step)])

    def _update(self, group, p, grad, state):
        beta1, beta2 = group["betas"]
        state["step"] += 1
        if group["weight_decay"] != 0:
            grad = grad.add(p, alpha=group["weight_decay"])
        exp_avg = state["exp_avg"].lerp_(grad, 1 - beta1)
        largest = rushlight.maximum(state["exp_inf"] * beta2, grad.abs() + group["eps"])
        state["exp_inf"].copy_(largest)
        correction = 1 - beta1 ** state["step"].item()
        p.addcdiv_(exp_avg, largest, value=-_number(group["lr"]) / correction)
