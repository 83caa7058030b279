"""Muon: momentum made orthogonal, for the matrices of hidden layers."""

from __future__ import annotations

import math

import rushlight
from rushlight import Tensor
from rushlight._command.names import show_from
from rushlight.optim._per_parameter import _PerParameter, _zeros
from rushlight.optim._shared import ParamsT
from rushlight.optim.optimizer import _number

__all__ = ["Muon"]

_COEFFICIENTS = (3.4445, -4.7750, 2.0315)


def _orthogonalize(matrix, coefficients, steps, eps):
    """Towards U V^T of the singular value decomposition by a quintic Newton-Schulz iteration in bfloat16.

    The coefficients have the steepest slope at zero; singular values end within about (0.5, 1.5)."""
    if steps >= 100:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    if len(coefficients) != 3:
        raise ValueError("Coefficients must be a tuple of exactly 3 values")
    a, b, c = coefficients
    tall = matrix.size(0) > matrix.size(1)
    x = (matrix.T if tall else matrix).to(rushlight.bfloat16, copy=True)
    x.div_(x.norm().clamp(min=eps))  # the spectral norm is at most 1 then
    for _ in range(steps):
        gram = x @ x.T
        x = rushlight.addmm(x, rushlight.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.T if tall else x


class Muon(_PerParameter):
    """Muon for matrices (Jordan 2024, https://kellerjordan.github.io/posts/muon); weight decay is decoupled.

    Args:
        params (iterable): tensors, (name, tensor) pairs, or dicts that each describe a group.
        lr (float or Tensor): learning rate.
        weight_decay (float): each step first takes lr * weight_decay of each parameter away.
        momentum (float): how much of the buffer is kept.
        nesterov (bool): whether the step looks ahead.
        ns_coefficients (three floats): of the iteration that makes the step orthogonal.
        eps (float): least norm of a step before that.
        ns_steps (int): how many iterations.
        adjust_lr_fn (str, optional): how steps depend on the shape (a, b): 'original' (default) multiplies by
            sqrt(max(1, a / b)), 'match_rms_adamw' by 0.2 * sqrt(max(a, b)) (Liu and others 2025,
            arXiv:2502.16982).

    Formula: b = momentum * b + (1 - momentum) * g; p -= rate * orthogonal(b), by Newton-Schulz iterations

    Raises: ValueError where an option is out of its range or there are no parameters.
    ValueError where a parameter is no matrix.

    Example:
        >>> w = torch.nn.Parameter(torch.eye(2))
        >>> optimizer = torch.optim.Muon([w], lr=0.1, weight_decay=0)
        >>> (w * torch.tensor([[1.0, 0.0], [0.0, 2.0]])).sum().backward()
        >>> optimizer.step()
        >>> w.data.round(decimals=1)
        tensor([[0.9000, 0.0000],
                [0.0000, 0.9000]])
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = _COEFFICIENTS,
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        if isinstance(lr, rushlight.Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        for what, value in (("Learning rate", lr), ("momentum", momentum), ("weight decay", weight_decay)):
            if not value >= 0.0:
                raise ValueError(f"{what} should be >= 0 but is: {value}")
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        defaults = {
            "lr": lr,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "nesterov": nesterov,
            "ns_coefficients": ns_coefficients,
            "eps": eps,
            "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
        }
        super().__init__(params, defaults)
        for group in self.param_groups:
            for p in group["params"]:
                if p.dim() != 2:
                    raise ValueError(
                        f"Muon only supports 2D parameters whereas we found a parameter with size: {p.size()}"
                    )

    def _start(self, group, p, state):
        state["momentum_buffer"] = _zeros(p.grad)

    def _update_complex(self, group, p, grad, state):
        raise RuntimeError("Muon does not support complex parameters")

    def _update(self, group, p, grad, state):
        momentum, lr = group["momentum"], _number(group["lr"])
        average = state["momentum_buffer"].lerp_(grad, 1 - momentum)
        update = grad.lerp(average, momentum) if group["nesterov"] else average
        update = _orthogonalize(update, group["ns_coefficients"], group["ns_steps"], group["eps"])
        rows, columns = p.shape
        if group["adjust_lr_fn"] == "match_rms_adamw":
            scale = 0.2 * math.sqrt(max(rows, columns))
        else:
            scale = math.sqrt(max(1, rows / columns))
        p.mul_(1 - lr * group["weight_decay"])
        p.add_(update, alpha=-lr * scale)


show_from("optim", Muon)
