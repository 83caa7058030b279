"""NAdam: Adam with Nesterov's momentum."""

from __future__ import annotations

import rushlight
from rushlight import Tensor
from rushlight.optim._functional import nadam
from rushlight.optim._per_parameter import _for_each_step, _new_step, _PerParameter, _zeros
from rushlight.optim._shared import ParamsT
from rushlight.optim.optimizer import _check_betas, _check_learning_rate, _check_range, _number

__all__ = ["NAdam", "nadam"]


class NAdam(_PerParameter):
    """NAdam (Dozat 2016): Adam whose step looks ahead as Nesterov's does.

    Args:
        params (iterable): tensors, (name, tensor) pairs, or dicts that each describe a group.
        lr (float or Tensor): learning rate.
        betas (two floats): how much of the running means of the gradient and of its square is kept.
        eps (float): added to the divisor.
        weight_decay (float): adds weight_decay * p to the gradient of each parameter p.
        momentum_decay (float): how fast the momentum approaches betas[0].
        decoupled_weight_decay (bool): whether weight decay acts on the parameters (as in AdamW).
        foreach (bool, optional): whether all parameters are updated by operators on lists.
        maximize (bool): whether steps go up instead of down.
        capturable (bool): whether the step may be recorded in a CUDA graph.
        differentiable (bool): whether gradients flow through the step; slower.

    Formula: m, v as in `Adam`; u(t) = b1 * (1 - 0.5 * 0.96**(t * momentum_decay)), U(t) their product;
        p -= lr * (u(t+1) * m / (1 - U(t+1)) + (1 - u(t)) * g / (1 - U(t))) / (sqrt(v / (1 - b2**t)) + eps)

    Raises: ValueError where an option is out of its range or there are no parameters.

    Example:
        >>> w = torch.nn.Parameter(torch.tensor([1.0, -2.0]))
        >>> optimizer = torch.optim.NAdam([w], lr=0.1)
        >>> for _ in range(3):
        ...     optimizer.zero_grad()
        ...     (w**2).sum().backward()
        ...     optimizer.step()
        >>> w.data
        tensor([ 0.7527, -1.7475])
    """

    _captured = "params, mu_products and state_steps", True

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 2e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
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
        _check_range("momentum_decay value", momentum_decay, 0.0 <= momentum_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    _fused_rule = "nadam"
    _fused_states = "exp_avg", "exp_avg_sq"

    def _start(self, group, p, state):
        state["step"] = _new_step()
        state["mu_product"] = rushlight.ones_like(_new_step())
        state["exp_avg"] = _zeros(p)
        state["exp_avg_sq"] = _zeros(p)

    def _momenta(self, group, step):
        """The momentum of this step and of the next."""
        beta1, decay = _number(group["betas"][0]), group["momentum_decay"]
        return [beta1 * (1.0 - 0.5 * 0.96 ** (s * decay)) for s in (step, step + 1)]

    def _fused_numbers(self, group, states):
        lr, (beta1, beta2) = _number(group["lr"]), map(_number, group["betas"])
        momenta = _for_each_step(states, lambda step: [(*self._momenta(group, step), 1 - beta2**step)])
        products = [state["mu_product"] for state in states]
        rushlight._foreach_mul_(products, [mu for mu, _, _ in momenta])
        factors = []
        for (mu, mu_next, correction), product in zip(momenta, products):
            product = product.item()
            factors += lr * (1 - mu) / (1 - product), lr * mu_next / (1 - product * mu_next), correction
        return [group["eps"], beta1, beta2], factors

    def _update(self, group, p, grad, state):
        beta1, beta2 = group["betas"]
        lr, decay, differentiable = _number(group["lr"]), group["weight_decay"], group["differentiable"]
        state["step"] += 1
        step = state["step"] if differentiable else state["step"].item()
        if decay != 0 and group["decoupled_weight_decay"]:
            p.mul_(1 - lr * decay)
        elif decay != 0:
            grad = grad.add(p, alpha=decay)

        mu, mu_next = self._momenta(group, step)
        state["mu_product"] *= mu
        product = state["mu_product"] if differentiable else state["mu_product"].item()

        exp_avg = state["exp_avg"].lerp_(grad, 1 - beta1)
        exp_avg_sq = state["exp_avg_sq"].mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        size = exp_avg_sq.div(1 - beta2**step).sqrt()
        now, ahead = -lr * (1.0 - mu) / (1.0 - product), -lr * mu_next / (1.0 - product * mu_next)
        if differentiable:
            # Written without in-place steps on what the graph still needs.
            size = size + group["eps"]
            p.addcdiv_(grad * now, size).addcdiv_(exp_avg * ahead, size)
        else:
            size.add_(group["eps"])
            p.addcdiv_(grad, size, value=now).addcdiv_(exp_avg, size, value=ahead)
