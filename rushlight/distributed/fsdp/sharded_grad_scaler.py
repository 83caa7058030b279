"""Loss scaling when each process sees a part of the gradients only."""

from rushlight import distributed, zeros
from rushlight.amp.grad_scaler import GradScaler

__all__ = ["ShardedGradScaler"]


class ShardedGradScaler(GradScaler):
    """A GradScaler that skips a step in all processes if one found infinite gradients.

    Args:
        process_group: the processes that share the model; all of them if None.
        The others are GradScaler's.
    """

    def __init__(
        self,
        device="cpu",
        init_scale=2.0**16,
        backoff_factor=0.5,
        growth_factor=2.0,
        growth_interval=2000,
        enabled=True,
        process_group=None,
    ):
        super().__init__(
            device,
            init_scale=init_scale,
            backoff_factor=backoff_factor,
            growth_factor=growth_factor,
            growth_interval=growth_interval,
            enabled=enabled,
        )
        self.process_group = process_group

    def unscale_(self, optimizer):
        """Divide the gradients by the scale, and learn whether they are finite everywhere."""
        super().unscale_(optimizer)
        if not self._enabled:
            return
        found = self._per_optimizer_states[id(optimizer)]["found_inf_per_device"]
        flag = zeros(1)
        for value in found.values():
            flag.copy_(value.maximum(flag))
        distributed.all_reduce(flag, distributed.ReduceOp.MAX, self.process_group)
        found.clear()
        found[flag.device] = flag
