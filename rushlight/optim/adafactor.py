"""Adafactor: second moments of matrices kept as a row and a column, so that state grows with their edges."""

from __future__ import annotations

import rushlight
from rushlight import Tensor
from rushlight._command.names import show_from
from rushlight.optim._per_parameter import _new_step, _PerParameter, _zeros
from rushlight.optim._shared import ParamsT
from rushlight.optim.optimizer import _number

__all__ = ["Adafactor"]


def _check_at_least(what, value, least):
    if not value >= least:
        raise ValueError(f"{what} should be >= {least} but is: {value}")


def _rms(t):
    """The root of the mean square, as a number."""
    return t.norm(2).item() / t.numel() ** 0.5


def _mean_square(t, dim):
    return rushlight.norm(t, dim=dim, keepdim=True).square_().div_(t.size(dim))


class Adafactor(_PerParameter):
    """Adafactor (Shazeer and Stern 2018): second moments of matrices are kept as rows and columns.

    Args:
        params (iterable): tensors, (name, tensor) pairs, or dicts that each describe a group.
        lr (float or Tensor): learning rate.
        beta2_decay (float): power of the step by which the running means forget less.
        eps (two floats): least root of second moments (None: the dtype's epsilon), least scale of parameters.
        d (float): the root mean square above which a step is clipped.
        weight_decay (float): each step first takes lr * weight_decay of each parameter away.
        foreach (bool, optional): whether all parameters are updated by operators on lists.
        maximize (bool): whether steps go up instead of down.

    Formula: b = 1 - t**beta2_decay; rows and columns of g**2 in running means v; u = g / sqrt(v);
        p -= min(lr, 1 / sqrt(t)) * max(eps2, rms(p)) * u / max(1, rms(u) / d)

    Raises: ValueError where an option is out of its range or there are no parameters.

    Example:
        >>> w = torch.nn.Parameter(torch.tensor([1.0, -2.0]))
        >>> optimizer = torch.optim.Adafactor([w], lr=0.1)
        >>> for _ in range(3):
        ...     optimizer.zero_grad()
        ...     (w**2).sum().backward()
        ...     optimizer.step()
        >>> w.data
        tensor([ 0.5987, -1.5822])
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        if isinstance(lr, rushlight.Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        _check_at_least("Learning rate", lr, 0)
        if not beta2_decay <= 0.0:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if eps[0] is not None:
            _check_at_least("epsilon1", eps[0], 0)
        _check_at_least("epsilon2", eps[1], 0)
        _check_at_least("Clipping threshold d", d, 1)
        _check_at_least("weight_decay", weight_decay, 0)
        defaults = {
            "lr": lr,
            "beta2_decay": beta2_decay,
            "eps": eps,
            "d": d,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def _start(self, group, p, state):
        state["step"] = _new_step()
        shape = p.grad.shape
        if p.grad.dim() > 1:
            state["row_var"] = p.grad.new_zeros((*shape[:-1], 1))
            state["col_var"] = p.grad.new_zeros((*shape[:-2], 1, shape[-1]))
        else:
            state["variance"] = _zeros(p.grad)

    def _update_complex(self, group, p, grad, state):
        raise RuntimeError("Adafactor does not support complex parameters")

    def _update(self, group, p, grad, state):
        eps1, eps2 = group["eps"]
        eps1 = rushlight.finfo(p.dtype).eps if eps1 is None else eps1
        lr = _number(group["lr"])
        state["step"] += 1
        step = state["step"].item()
        alpha = max(eps2, _rms(p)) * min(lr, 1 / step**0.5)
        if group["weight_decay"] != 0:
            p.mul_(1 - lr * group["weight_decay"])
        variance = self._second_moment(state, grad, step ** group["beta2_decay"], eps1)
        update = variance.clamp_(min=eps1 * eps1).rsqrt_().mul_(grad)
        p.add_(update, alpha=-alpha / max(1.0, _rms(update) / group["d"]))

    def _second_moment(self, state, grad, weight, eps1):
        """The estimate after this gradient, in memory of its own."""
        if grad.dim() <= 1:
            return state["variance"].lerp_(grad * grad, weight).clone()
        row = state["row_var"].lerp_(_mean_square(grad, -1), weight)
        column = state["col_var"].lerp_(_mean_square(grad, -2), weight)
        return (row @ column).div_(row.mean(dim=-2, keepdim=True).clamp_(min=eps1))


show_from("optim", Adafactor)
