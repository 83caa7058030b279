"""Adadelta: steps in the units of the parameters, from running squares of gradients and of steps."""

from __future__ import annotations

from rushlight import Tensor
from rushlight.optim._functional import adadelta
from rushlight.optim._per_parameter import _new_step, _PerParameter, _zeros
from rushlight.optim._shared import ParamsT
from rushlight.optim.optimizer import _check_learning_rate, _check_range, _number

__all__ = ["Adadelta", "adadelta"]


class Adadelta(_PerParameter):
    """Adadelta (Zeiler 2012): steps in units of the parameters, by running means of squared steps.

    Args:
        params (iterable): tensors, (name, tensor) pairs, or dicts that each describe a group.
        lr (float or Tensor): learning rate.
        rho (float): how much of the running means is kept.
        eps (float): added to both running means.
        weight_decay (float): adds weight_decay * p to the gradient of each parameter p.
        foreach (bool, optional): whether all parameters are updated by operators on lists.
        capturable (bool): whether the step may be recorded in a CUDA graph.
        maximize (bool): whether steps go up instead of down.
        differentiable (bool): whether gradients flow through the step; slower.

    Formula: v = rho * v + (1 - rho) * g**2; d = sqrt(u + eps) / sqrt(v + eps) * g;
        u = rho * u + (1 - rho) * d**2; p -= lr * d

    Raises: ValueError where an option is out of its range or there are no parameters.

    Example:
        >>> w = torch.nn.Parameter(torch.tensor([1.0, -2.0]))
        >>> optimizer = torch.optim.Adadelta([w])
        >>> for _ in range(3):
        ...     optimizer.zero_grad()
        ...     (w**2).sum().backward()
        ...     optimizer.step()
        >>> w.data
        tensor([ 0.9903, -1.9903])
    """

    _captured = "params and state_steps", False

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        _check_learning_rate(lr)
        _check_range("rho value", rho, 0.0 <= rho <= 1.0)
        _check_range("epsilon value", eps, 0.0 <= eps)
        _check_range("weight_decay value", weight_decay, 0.0 <= weight_decay)
        defaults = {
            "lr": lr,
            "rho": rho,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "capturable": capturable,
            "foreach": foreach,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    _fused_rule = "adadelta"
    _fused_states = "square_avg", "acc_delta"

    def _start(self, group, p, state):
        state["step"] = _new_step()
        state["square_avg"] = _zeros(p)
        state["acc_delta"] = _zeros(p)

    def _fused_numbers(self, group, states):
        return [group["eps"], group["rho"], _number(group["lr"])], []

    def _update(self, group, p, grad, state):
        rho, eps = group["rho"], group["eps"]
        state["step"] += 1
        if group["weight_decay"] != 0:
            grad = grad.add(p, alpha=group["weight_decay"])
        square_avg = state["square_avg"].mul_(rho).addcmul_(grad, grad, value=1 - rho)
        size = square_avg.add(eps).sqrt_()
        delta = state["acc_delta"].add(eps).sqrt_()
        if group["differentiable"]:
            delta = delta.clone()
        delta.div_(size).mul_(grad)
        state["acc_delta"].mul_(rho).addcmul_(delta, delta, value=1 - rho)
        p.add_(delta, alpha=-_number(group["lr"]))
