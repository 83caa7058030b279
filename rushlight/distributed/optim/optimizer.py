"""An optimizer over parameters that live on several workers of remote calls."""

from __future__ import annotations

import threading

from .. import autograd, rpc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_step_lock = threading.Lock()


class _LocalOptimizer:
    """One worker's optimizer, over its own parameters."""

    def __init__(self, optimizer_class, parameters, args, kwargs):
        self._parameters = [rref.local_value() for rref in parameters]
        self.optimizer = optimizer_class(self._parameters, *args, **kwargs)

    def step(self, context_id):
        gradients = autograd.get_gradients(context_id)
        with _step_lock:
            before = [parameter.grad for parameter in self._parameters]
            for parameter in self._parameters:
                parameter.grad = gradients.get(parameter)
            self.optimizer.step()
            for parameter, gradient in zip(self._parameters, before):
                parameter.grad = gradient


class DistributedOptimizer:
    """Steps the parameters behind references, each where it lives, by the gradients of a context of
    `torch.distributed.autograd`.

    Args:
        optimizer_class: of the local optimizers, `torch.optim.SGD` for one.
        params_rref: references to the parameters.
        args, kwargs: for the local optimizers.
    """

    def __init__(self, optimizer_class: Any, params_rref: list[Any], *args: Any, **kwargs: Any) -> None:
        by_owner: dict = {}
        for reference in params_rref:
            by_owner.setdefault(reference.owner(), []).append(reference)
        self.is_functional_optim = False
        made = [
            rpc.rpc_async(owner, _make, (optimizer_class, references, args, kwargs))
            for owner, references in by_owner.items()
        ]
        self.remote_optimizers = [future.wait() for future in made]

    def step(self, context_id: int) -> Any:
        """One step on all workers; raises what went wrong on any of them."""
        autograd._retrieve_context(context_id)
        steps = [optimizer.rpc_async().step(context_id) for optimizer in self.remote_optimizers]
        for future in steps:
            future.wait()


def _make(optimizer_class, references, args, kwargs):
    return rpc.RRef(_LocalOptimizer(optimizer_class, references, args, kwargs))
