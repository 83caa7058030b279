"""Stochastic gradient descent, with momentum after Polyak or Nesterov."""

from __future__ import annotations

import rushlight
from rushlight import Tensor
from rushlight.optim._functional import sgd
from rushlight.optim._per_parameter import _PerParameter
from rushlight.optim._shared import ParamsT
from rushlight.optim.optimizer import _check_fused, _check_learning_rate, _check_range, _number

__all__ = ["SGD", "sgd"]


class SGD(_PerParameter):
    """Stochastic gradient descent, optionally with momentum (Polyak 1964; Nesterov 1983).

    Args:
        params (iterable): tensors, (name, tensor) pairs, or dicts that each describe a group.
        lr (float or Tensor): learning rate.
        momentum (float): how much of the buffer is kept.
        dampening (float): how much less of the gradient enters the buffer.
        weight_decay (float): adds weight_decay * p to the gradient of each parameter p.
        nesterov (bool): whether the step looks ahead; needs momentum and no dampening.
        maximize (bool): whether steps go up instead of down.
        foreach (bool, optional): whether all parameters are updated by operators on lists.
        differentiable (bool): whether gradients flow through the step; slower.
        fused (bool, optional): whether one kernel does the whole step; None chooses.

    Formula: b = momentum * b + (1 - dampening) * g, at first b = g; p -= lr * b, or with `nesterov`
        p -= lr * (g + momentum * b); without momentum p -= lr * g

    Raises: ValueError where an option is out of its range or there are no parameters.

    Example:
        >>> w = torch.nn.Parameter(torch.tensor([1.0, -2.0]))
        >>> optimizer = torch.optim.SGD([w], lr=0.1, momentum=0.9)
        >>> for _ in range(3):
        ...     optimizer.zero_grad()
        ...     (w**2).sum().backward()
        ...     optimizer.step()
        >>> w.data
        tensor([ 0.0620, -0.1240])
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        _check_learning_rate(lr)
        _check_range("momentum value", momentum, momentum >= 0.0)
        _check_range("weight_decay value", weight_decay, weight_decay >= 0.0)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
        _check_fused(foreach, fused, differentiable)

    _takes_sparse = True
    _fused_rule = "sgd"

    def _keeps_state(self, group):
        return group["momentum"] != 0

    def _uniform(self, group, params):
        """Whether the buffers of these parameters are all there or all missing, as the fused kernel wants
        it."""
        if group["momentum"] == 0:
            return True
        missing = sum(self.state[p].get("momentum_buffer") is None for p in params)
        return missing in (0, len(params))

    def _step_fused(self, group, params, grads):
        buffers, first = [], False
        if group["momentum"] != 0:
            states = [self.state[p] for p in params]
            first = states[0].get("momentum_buffer") is None
            if first:
                for state, grad in zip(states, grads):
                    state["momentum_buffer"] = rushlight.empty_like(grad)
            buffers = [state["momentum_buffer"] for state in states]
        rushlight._fused_sgd_(
            params,
            grads,
            buffers,
            weight_decay=_number(group["weight_decay"]),
            momentum=group["momentum"],
            lr=_number(group["lr"]),
            dampening=group["dampening"],
            nesterov=group["nesterov"],
            maximize=group["maximize"],
            is_first_step=first,
        )

    def _update(self, group, p, grad, state):
        if group["weight_decay"] != 0:
            if grad.is_sparse:
                raise RuntimeError("SGD: weight_decay option is not compatible with sparse gradients")
            grad = grad.add(p, alpha=group["weight_decay"])
        momentum = group["momentum"]
        if momentum != 0:
            buffer = state.get("momentum_buffer")
            if buffer is None:
                buffer = state["momentum_buffer"] = grad.detach().clone()
            else:
                buffer.mul_(momentum).add_(grad, alpha=1 - group["dampening"])
            grad = grad.add(buffer, alpha=momentum) if group["nesterov"] else buffer
        lr = group["lr"]
        if isinstance(lr, rushlight.Tensor) and lr.requires_grad:
            p.addcmul_(grad, lr, value=-1)
        else:
            p.add_(grad, alpha=-lr)
