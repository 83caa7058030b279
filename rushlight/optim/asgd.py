"""Averaged stochastic gradient descent."""

from __future__ import annotations

from rushlight import Tensor
from rushlight.optim._functional import asgd
from rushlight.optim._per_parameter import _new_step, _PerParameter, _zeros
from rushlight.optim._shared import ParamsT
from rushlight.optim.optimizer import _check_learning_rate, _check_range, _number

__all__ = ["ASGD", "asgd"]


class ASGD(_PerParameter):
    """Averaged SGD (Polyak and Juditsky 1992); the average is state[p]["ax"].

    Args:
        params (iterable): tensors, (name, tensor) pairs, or dicts that each describe a group.
        lr (float or Tensor): learning rate.
        lambd (float): how fast parameters and rate decay.
        alpha (float): power of the decay of the rate.
        t0 (float): step at which averaging starts.
        weight_decay (float): adds weight_decay * p to the gradient of each parameter p.
        foreach (bool, optional): whether all parameters are updated by operators on lists.
        maximize (bool): whether steps go up instead of down.
        differentiable (bool): whether gradients flow through the step; slower.
        capturable (bool): whether the step may be recorded in a CUDA graph.

    Formula: at step t, e = lr / (1 + lambd * lr * t)**alpha: p = p * (1 - lambd * e) - e * g;
        ax += (p - ax) / max(1, t - t0)

    Raises: ValueError where an option is out of its range or there are no parameters.

    Example:
        >>> w = torch.nn.Parameter(torch.tensor([1.0, -2.0]))
        >>> optimizer = torch.optim.ASGD([w], lr=0.1)
        >>> for _ in range(3):
        ...     optimizer.zero_grad()
        ...     (w**2).sum().backward()
        ...     optimizer.step()
        >>> w.data
        tensor([ 0.5120, -1.0240])
    """

    _captured = "params, mus, etas, and state_steps", True

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        _check_learning_rate(lr)
        _check_range("weight_decay value", weight_decay, 0.0 <= weight_decay)
        defaults = {
            "lr": lr,
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    _fused_rule = "asgd"
    _fused_states = ("ax",)

    def _start(self, group, p, state):
        state["step"] = _new_step()
        state["eta"] = _new_step().fill_(_number(group["lr"]))
        state["mu"] = _new_step().fill_(1.0)
        state["ax"] = _zeros(p)

    def _advance(self, group, state, step):
        """The step size and the weight in the average of the next step."""
        lr = _number(group["lr"])
        state["eta"].fill_(lr / (1 + group["lambd"] * lr * step) ** group["alpha"])
        state["mu"].fill_(1 / max(1, step - group["t0"]))

    def _fused_numbers(self, group, states):
        factors = [state[name].item() for state in states for name in ("eta", "mu")]
        for state in states:
            self._advance(group, state, state["step"].item())
        return [group["lambd"]], factors

    def _update(self, group, p, grad, state):
        lambd, ax = group["lambd"], state["ax"]
        state["step"] += 1
        step, eta, mu = state["step"].item(), state["eta"].item(), state["mu"].item()
        if group["weight_decay"] != 0:
            grad = grad.add(p, alpha=group["weight_decay"])
        p.mul_(1 - lambd * eta)
        p.add_(grad, alpha=-eta)
        if mu != 1:
            ax.add_(p.sub(ax).mul_(mu))
        else:
            ax.copy_(p)
        self._advance(group, state, step)
