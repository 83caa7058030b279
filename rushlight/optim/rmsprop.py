"""RMSprop: steps divided by a running root mean square of the gradient."""

from __future__ import annotations

from rushlight import Tensor
from rushlight.optim._functional import rmsprop
from rushlight.optim._per_parameter import _new_step, _PerParameter, _zeros
from rushlight.optim._shared import ParamsT
from rushlight.optim.optimizer import _check_learning_rate, _check_range, _number

__all__ = ["RMSprop", "rmsprop"]


class RMSprop(_PerParameter):
    """RMSprop (Hinton 2012, lecture 6e of Neural Networks for Machine Learning): steps over the root mean
    square.

    Args:
        params (iterable): tensors, (name, tensor) pairs, or dicts that each describe a group.
        lr (float or Tensor): learning rate.
        alpha (float): how much of the running mean of squares is kept.
        eps (float): added to the divisor.
        weight_decay (float): adds weight_decay * p to the gradient of each parameter p.
        momentum (float): how much of the last step is kept.
        centered (bool): whether the variance divides instead of the mean square.
        capturable (bool): whether the step may be recorded in a CUDA graph.
        foreach (bool, optional): whether all parameters are updated by operators on lists.
        maximize (bool): whether steps go up instead of down.
        differentiable (bool): whether gradients flow through the step; slower.

    Formula: v = alpha * v + (1 - alpha) * g**2; b = momentum * b + g / (sqrt(v) + eps); p -= lr * b

    Raises: ValueError where an option is out of its range or there are no parameters.

    Example:
        >>> w = torch.nn.Parameter(torch.tensor([1.0, -2.0]))
        >>> optimizer = torch.optim.RMSprop([w], lr=0.1)
        >>> for _ in range(3):
        ...     optimizer.zero_grad()
        ...     (w**2).sum().backward()
        ...     optimizer.step()
        >>> w.data
        tensor([ 3.0331e-12, -3.0969e-01])
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        _check_learning_rate(lr)
        _check_range("epsilon value", eps, 0.0 <= eps)
        _check_range("momentum value", momentum, 0.0 <= momentum)
        _check_range("weight_decay value", weight_decay, 0.0 <= weight_decay)
        _check_range("alpha value", alpha, 0.0 <= alpha)
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
            "capturable": capturable,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    _fused_rule = "rmsprop"
    _fused_states = "square_avg", "momentum_buffer", "grad_avg"

    def _start(self, group, p, state):
        state["step"] = _new_step()
        state["square_avg"] = _zeros(p)
        if group["momentum"] > 0:
            state["momentum_buffer"] = _zeros(p)
        if group["centered"]:
            state["grad_avg"] = _zeros(p)

    def _fused_numbers(self, group, states):
        return [group["eps"], group["alpha"], _number(group["lr"]), group["momentum"]], []

    def _update(self, group, p, grad, state):
        lr, alpha, square_avg = _number(group["lr"]), group["alpha"], state["square_avg"]
        state["step"] += 1
        if group["weight_decay"] != 0:
            grad = grad.add(p, alpha=group["weight_decay"])
        square_avg.mul_(alpha).addcmul_(grad, grad, value=1 - alpha)
        if group["centered"]:
            mean = state["grad_avg"].lerp_(grad, 1 - alpha)
            size = square_avg.addcmul(mean, mean, value=-1).sqrt_()
        else:
            size = square_avg.sqrt()
        size = size.add(group["eps"]) if group["differentiable"] else size.add_(group["eps"])
        if group["momentum"] > 0:
            buffer = state["momentum_buffer"].mul_(group["momentum"]).addcdiv_(grad, size)
            p.add_(buffer, alpha=-lr)
        else:
            p.addcdiv_(grad, size, value=-lr)
