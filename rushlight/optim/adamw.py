"""AdamW: Adam whose weight decay does not pass through the moments (Loshchilov and Hutter 2019)."""

from __future__ import annotations

from rushlight import Tensor
from rushlight.optim._functional import adamw
from rushlight.optim._shared import ParamsT
from rushlight.optim.adam import Adam

__all__ = ["AdamW", "adamw"]


class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019): it does not pass through the moments.

    Args:
        params (iterable): tensors, (name, tensor) pairs, or dicts that each describe a group.
        lr (float or Tensor): learning rate.
        betas (two floats): how much of the running means of the gradient and of its square is kept.
        eps (float): added to the divisor.
        weight_decay (float): each step first takes lr * weight_decay of each parameter away.
        amsgrad (bool): whether the divisor never falls: the maximum of v so far.
        maximize (bool): whether steps go up instead of down.
        foreach (bool, optional): whether all parameters are updated by operators on lists.
        capturable (bool): whether the step may be recorded in a CUDA graph.
        differentiable (bool): whether gradients flow through the step; slower.
        fused (bool, optional): whether one kernel does the whole step; None chooses.

    Formula: p -= lr * weight_decay * p; then the step of `Adam`

    Raises: ValueError where an option is out of its range or there are no parameters.

    Example:
        >>> w = torch.nn.Parameter(torch.tensor([1.0, -2.0]))
        >>> optimizer = torch.optim.AdamW([w], lr=0.1)
        >>> for _ in range(3):
        ...     optimizer.zero_grad()
        ...     (w**2).sum().backward()
        ...     optimizer.step()
        >>> w.data
        tensor([ 0.6989, -1.6949])
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True
