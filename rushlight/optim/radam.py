"""RAdam: Adam that waits with its second moment until the estimate can be trusted."""

from __future__ import annotations

from rushlight import Tensor
from rushlight.optim._functional import radam
from rushlight.optim._per_parameter import _for_each_step, _new_step, _PerParameter, _zeros
from rushlight.optim._shared import ParamsT
from rushlight.optim.optimizer import _check_betas, _check_learning_rate, _check_range, _number

__all__ = ["RAdam", "radam"]


def _rectified(beta2, step):
    """What the root of the second moment is divided into; 0 while the moment says too little."""
    correction = 1 - beta2**step
    # rho is the length of the average that the second moment stands for.
    rho_inf = 2 / (1 - beta2) - 1
    rho = rho_inf - 2 * step * beta2**step / correction
    if rho <= 5.0:
        return 0.0
    rectify = (rho - 4) * (rho - 2) * rho_inf / ((rho_inf - 4) * (rho_inf - 2) * rho)
    return (correction * rectify) ** 0.5


class RAdam(_PerParameter):
    """RAdam (Liu and others 2020): Adam whose adaptive step is scaled by how well its variance is known.

    Args:
        params (iterable): tensors, (name, tensor) pairs, or dicts that each describe a group.
        lr (float or Tensor): learning rate.
        betas (two floats): how much of the running means of the gradient and of its square is kept.
        eps (float): added to the divisor.
        weight_decay (float): adds weight_decay * p to the gradient of each parameter p.
        decoupled_weight_decay (bool): whether weight decay acts on the parameters (as in AdamW).
        foreach (bool, optional): whether all parameters are updated by operators on lists.
        maximize (bool): whether steps go up instead of down.
        capturable (bool): whether the step may be recorded in a CUDA graph.
        differentiable (bool): whether gradients flow through the step; slower.

    Formula: n = 2 / (1 - b2) - 1; r = n - 2 * t * b2**t / (1 - b2**t); where r > 5 the step of `Adam` times
        sqrt((r - 4) * (r - 2) * n / ((n - 4) * (n - 2) * r)), else p -= lr * m / (1 - b1**t)

    Raises: ValueError where an option is out of its range or there are no parameters.

    Example:
        >>> w = torch.nn.Parameter(torch.tensor([1.0, -2.0]))
        >>> optimizer = torch.optim.RAdam([w], lr=0.1)
        >>> for _ in range(3):
        ...     optimizer.zero_grad()
        ...     (w**2).sum().backward()
        ...     optimizer.step()
        >>> w.data
        tensor([ 0.4623, -0.9246])
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
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
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "decoupled_weight_decay": decoupled_weight_decay,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    _fused_rule = "radam"
    _fused_states = "exp_avg", "exp_avg_sq"

    def _start(self, group, p, state):
        state["step"] = _new_step()
        state["exp_avg"] = _zeros(p)
        state["exp_avg_sq"] = _zeros(p)

    def _fused_numbers(self, group, states):
        lr, (beta1, beta2) = _number(group["lr"]), map(_number, group["betas"])
        factors = _for_each_step(states, lambda step: [lr / (1 - beta1**step), _rectified(beta2, step)])
        return [group["eps"], beta1, beta2], factors

    def _update(self, group, p, grad, state):
        beta1, beta2 = group["betas"]
        lr, decay = _number(group["lr"]), group["weight_decay"]
        state["step"] += 1
        step = state["step"].item()
        if decay != 0 and group["decoupled_weight_decay"]:
            p.mul_(1 - lr * decay)
        elif decay != 0:
            grad = grad.add(p, alpha=decay)
        exp_avg = state["exp_avg"].lerp_(grad, 1 - beta1)
        exp_avg_sq = state["exp_avg_sq"].mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        move = exp_avg / (1 - beta1**step) * lr
        rectified = _rectified(beta2, step)
        if rectified != 0:
            size = exp_avg_sq.sqrt()
            size = size + group["eps"] if group["differentiable"] else size.add_(group["eps"])
            move = move * (rectified / size)
        p.add_(move, alpha=-1.0)
