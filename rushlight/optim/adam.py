"""Adam, and its variant with decoupled weight decay, AdamW."""

from __future__ import annotations

import rushlight
from rushlight import Tensor
from rushlight.optim._functional import adam
from rushlight.optim._per_parameter import _new_step, _PerParameter, _wants_fused, _zeros
from rushlight.optim._shared import ParamsT
from rushlight.optim.optimizer import _check_betas, _check_fused, _check_learning_rate, _check_range, _number

__all__ = ["Adam", "adam"]


class Adam(_PerParameter):
    """Adam (Kingma and Ba 2015), optionally with AMSGrad (Reddi, Kale and Kumar 2018).

    Args:
        params (iterable): tensors, (name, tensor) pairs, or dicts that each describe a group.
        lr (float or Tensor): learning rate.
        betas (two floats): how much of the running means of the gradient and of its square is kept.
        eps (float): added to the divisor.
        weight_decay (float): adds weight_decay * p to the gradient of each parameter p.
        amsgrad (bool): whether the divisor never falls: the maximum of v so far.
        foreach (bool, optional): whether all parameters are updated by operators on lists.
        maximize (bool): whether steps go up instead of down.
        capturable (bool): whether the step may be recorded in a CUDA graph.
        differentiable (bool): whether gradients flow through the step; slower.
        fused (bool, optional): whether one kernel does the whole step; None chooses.
        decoupled_weight_decay (bool): whether weight decay acts on the parameters (as in AdamW).

    Formula: m = b1 * m + (1 - b1) * g; v = b2 * v + (1 - b2) * g**2; at step t
        p -= lr * m / (1 - b1**t) / (sqrt(v / (1 - b2**t)) + eps)

    Raises: ValueError where an option is out of its range or there are no parameters.

    Example:
        >>> w = torch.nn.Parameter(torch.tensor([1.0, -2.0]))
        >>> optimizer = torch.optim.Adam([w], lr=0.1)
        >>> for _ in range(3):
        ...     optimizer.zero_grad()
        ...     (w**2).sum().backward()
        ...     optimizer.step()
        >>> w.data
        tensor([ 0.7016, -1.7006])
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        if isinstance(lr, rushlight.Tensor) and foreach and not capturable:
            raise ValueError("lr as a Tensor is not supported for capturable=False and foreach=True")
        _check_learning_rate(lr)
        _check_range("epsilon value", eps, 0.0 <= eps)
        _check_betas(betas)
        _check_range("weight_decay value", weight_decay, 0.0 <= weight_decay)
        if isinstance(betas[0], rushlight.Tensor) != isinstance(betas[1], rushlight.Tensor):
            raise ValueError("betas must be either both floats or both Tensors")
        for i, beta in enumerate(betas):
            if isinstance(beta, rushlight.Tensor) and foreach and not capturable:
                raise ValueError(
                    f"betas[{i}] as a Tensor is not supported for capturable=False and foreach=True"
                )
            if isinstance(beta, rushlight.Tensor) and beta.numel() != 1:
                raise ValueError(f"Tensor betas[{i}] must be 1-element")
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)
        _check_fused(foreach, fused, differentiable)

    def _start(self, group, p, state):
        state["step"] = rushlight.tensor(0.0, dtype=rushlight.float32) if _wants_fused(group) else _new_step()
        state["exp_avg"] = _zeros(p)
        state["exp_avg_sq"] = _zeros(p)
        if group["amsgrad"]:
            state["max_exp_avg_sq"] = _zeros(p)

    _fused_rule = "adam"
    _instead_for_sparse = ", please consider SparseAdam instead"

    def _step_fused(self, group, params, grads):
        states = self._states_of(group, params)
        steps = [state["step"] for state in states]
        amsgrad = group["amsgrad"]
        beta1, beta2 = group["betas"]
        rushlight._foreach_add_(steps, 1)
        fused = rushlight._fused_adamw_ if group["decoupled_weight_decay"] else rushlight._fused_adam_
        fused(
            params,
            grads,
            [state["exp_avg"] for state in states],
            [state["exp_avg_sq"] for state in states],
            [state["max_exp_avg_sq"] for state in states] if amsgrad else [],
            steps,
            lr=_number(group["lr"]),
            beta1=_number(beta1),
            beta2=_number(beta2),
            weight_decay=group["weight_decay"],
            eps=group["eps"],
            amsgrad=amsgrad,
            maximize=group["maximize"],
        )

    def _update(self, group, p, grad, state):
        beta1, beta2 = group["betas"]
        lr, decay, exp_avg, exp_avg_sq = (
            group["lr"],
            group["weight_decay"],
            state["exp_avg"],
            state["exp_avg_sq"],
        )
        state["step"] += 1
        if decay != 0:
            if group["decoupled_weight_decay"]:
                p.mul_(1 - lr * decay)
            else:
                grad = grad.add(p, alpha=decay)
        exp_avg.lerp_(grad, 1 - beta1)
        if group["differentiable"] and isinstance(beta2, rushlight.Tensor):
            exp_avg_sq.mul_(beta2).add_(grad * grad * (1 - beta2))
        else:
            exp_avg_sq.mul_(beta2).addcmul_(grad, grad, value=_number(1 - beta2))

        step = state["step"] if group["differentiable"] else state["step"].item()
        correction1, correction2 = 1 - beta1**step, 1 - beta2**step
        if group["amsgrad"]:
            before = state["max_exp_avg_sq"]
            largest = rushlight.maximum(before.clone() if group["differentiable"] else before, exp_avg_sq)
            state["max_exp_avg_sq"].copy_(largest)
            exp_avg_sq = largest
        if group["differentiable"]:
            # Written without in-place steps on what the graph still needs.
            denominator = exp_avg_sq.sqrt() / correction2**0.5 + group["eps"]
            p.add_(exp_avg.clone() * (-lr / correction1) / denominator)
        else:
            denominator = (exp_avg_sq.sqrt() / correction2**0.5).add_(group["eps"])
            p.addcdiv_(exp_avg, denominator, value=_number(-lr / correction1))
