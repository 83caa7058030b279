"""Adam for sparse gradients: only the listed rows move, and only their moments."""

from __future__ import annotations

import rushlight
from rushlight import Tensor
from rushlight.optim._per_parameter import _PerParameter, _zeros
from rushlight.optim._shared import ParamsT
from rushlight.optim.optimizer import _check_betas, _check_learning_rate, _check_range, _number

__all__ = ["SparseAdam"]


class SparseAdam(_PerParameter):
    """Adam (Kingma and Ba 2015) for sparse gradients, as of an embedding with `sparse=True`: moments
    change only where the gradient has elements.

    Args:
        params (iterable): tensors, (name, tensor) pairs, or dicts that each describe a group.
        lr (float or Tensor): learning rate.
        betas (two floats): how much of the running means of the gradient and of its square is kept.
        eps (float): added to the divisor.
        maximize (bool): whether steps go up instead of down.

    Formula: that of `Adam`, for the elements that the gradient has

    Raises: ValueError where an option is out of its range or there are no parameters.
    RuntimeError where a gradient is dense.

    Example:
        >>> table = torch.nn.Embedding(4, 2, sparse=True, _weight=torch.ones(4, 2))
        >>> optimizer = torch.optim.SparseAdam(table.parameters(), lr=0.5)
        >>> table(torch.tensor([1])).sum().backward()
        >>> optimizer.step()
        >>> table.weight.data
        tensor([[1.0000, 1.0000],
                [0.5000, 0.5000],
                [1.0000, 1.0000],
                [1.0000, 1.0000]])
    """

    _takes_sparse = True

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        _check_learning_rate(lr)
        _check_range("learning rate", lr, 0.0 < lr)
        _check_range("epsilon value", eps, 0.0 < eps)
        _check_betas(betas)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        self._refuse("Sparse", lambda p: p.is_sparse, "requires dense parameter tensors")
        self._refuse("Complex", rushlight.is_complex, "does not support complex parameters")

    def _refuse(self, kind, is_bad, why):
        bad = [
            [g, i]
            for g, group in enumerate(self.param_groups)
            for i, p in enumerate(group["params"])
            if is_bad(p)
        ]
        if bad:
            raise ValueError(f"{kind} params at indices {bad}: SparseAdam {why}")

    def _start(self, group, p, state):
        state["step"] = 0
        state["exp_avg"] = _zeros(p)
        state["exp_avg_sq"] = _zeros(p)

    def _update(self, group, p, grad, state):
        if not grad.is_sparse:
            raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")
        state["step"] += 1
        grad = grad.coalesce()
        values = grad._values()
        if values.numel() == 0:
            return
        beta1, beta2 = group["betas"]

        def at_positions(new):
            return rushlight.sparse_coo_tensor(grad._indices(), new, grad.shape, is_coalesced=True)

        def moved(average, target, beta):
            """The moment after this gradient, at its positions; the moment itself is updated there."""
            old = average.sparse_mask(grad)._values()
            change = (target - old).mul_(1 - beta)
            average.add_(at_positions(change))
            return change.add_(old)

        first = moved(state["exp_avg"], values, beta1)
        second = moved(state["exp_avg_sq"], values.pow(2), beta2)
        correction1, correction2 = 1 - beta1 ** state["step"], 1 - beta2 ** state["step"]
        step_size = _number(group["lr"]) * correction2**0.5 / correction1
        p.add_(at_positions(first.div_(second.sqrt_().add_(group["eps"])).mul_(-step_size)))
