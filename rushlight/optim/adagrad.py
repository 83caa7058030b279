"""Adagrad: steps divided by the root of all squared gradients so far."""

from __future__ import annotations

import rushlight
from rushlight import Tensor
from rushlight.optim._functional import adagrad
from rushlight.optim._per_parameter import _for_each_step, _new_step, _PerParameter
from rushlight.optim._shared import ParamsT
from rushlight.optim.optimizer import _check_fused, _check_learning_rate, _check_range, _number

__all__ = ["Adagrad", "adagrad"]


class Adagrad(_PerParameter):
    """Adagrad (Duchi, Hazan and Singer 2011): steps shrink with the sum of squared gradients.

    Args:
        params (iterable): tensors, (name, tensor) pairs, or dicts that each describe a group.
        lr (float or Tensor): learning rate.
        lr_decay (float): how fast the rate falls with the steps.
        weight_decay (float): adds weight_decay * p to the gradient of each parameter p.
        initial_accumulator_value (float): what the sums start from.
        eps (float): added to the divisor.
        foreach (bool, optional): whether all parameters are updated by operators on lists.
        maximize (bool): whether steps go up instead of down.
        differentiable (bool): whether gradients flow through the step; slower.
        fused (bool, optional): whether one kernel does the whole step; None chooses.

    Formula: s += g**2; at step t p -= lr / (1 + (t - 1) * lr_decay) * g / (sqrt(s) + eps)

    Raises: ValueError where an option is out of its range or there are no parameters.

    Example:
        >>> w = torch.nn.Parameter(torch.tensor([1.0, -2.0]))
        >>> optimizer = torch.optim.Adagrad([w], lr=0.1)
        >>> for _ in range(3):
        ...     optimizer.zero_grad()
        ...     (w**2).sum().backward()
        ...     optimizer.step()
        >>> w.data
        tensor([ 0.7805, -1.7758])
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        _check_learning_rate(lr)
        _check_range("lr_decay value", lr_decay, 0.0 <= lr_decay)
        _check_range("weight_decay value", weight_decay, 0.0 <= weight_decay)
        initial = initial_accumulator_value
        _check_range("initial_accumulator_value value", initial, 0.0 <= initial)
        _check_range("epsilon value", eps, 0.0 <= eps)
        defaults = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
        _check_fused(foreach, fused, differentiable)
        # Unlike other optimizers, Adagrad has its state from the beginning.
        for group in self.param_groups:
            for p in group["params"]:
                self._start(group, p, self.state[p])

    _takes_sparse = True

    def share_memory(self) -> None:
        """Put the sums where other processes see them."""
        for state in self.state.values():
            state["sum"].share_memory_()

    _fused_rule = "adagrad"
    _fused_states = ("sum",)

    def _start(self, group, p, state):
        state["step"] = _new_step()
        start = group["initial_accumulator_value"]
        start = complex(start, start) if p.is_complex() else start
        state["sum"] = rushlight.full_like(p, start, memory_format=rushlight.preserve_format)

    def _fused_numbers(self, group, states):
        lr, decay = _number(group["lr"]), group["lr_decay"]
        return [group["eps"]], _for_each_step(states, lambda step: [lr / (1 + (step - 1) * decay)])

    def _update(self, group, p, grad, state):
        state["step"] += 1
        if grad.is_sparse:
            self._update_sparse(group, p, grad.coalesce(), state)
            return
        if group["weight_decay"] != 0:
            grad = grad.add(p, alpha=group["weight_decay"])
        lr = _number(group["lr"]) / (1 + (state["step"].item() - 1) * group["lr_decay"])
        total = state["sum"].addcmul_(grad, grad, value=1)
        size = total.sqrt() + group["eps"] if group["differentiable"] else total.sqrt().add_(group["eps"])
        p.addcdiv_(grad, size, value=-lr)

    def _update_sparse(self, group, p, grad, state):
        """The same at the positions that the gradient lists."""
        if group["weight_decay"] != 0:
            raise RuntimeError("weight_decay option is not compatible with sparse gradients")
        lr = _number(group["lr"]) / (1 + (state["step"].item() - 1) * group["lr_decay"])

        def at_positions(values):
            return rushlight.sparse_coo_tensor(grad._indices(), values, grad.shape, is_coalesced=True)

        total = state["sum"].add_(at_positions(grad._values().pow(2))).sparse_mask(grad)._values()
        p.add_(at_positions(grad._values() / total.sqrt_().add_(group["eps"])), alpha=-lr)
