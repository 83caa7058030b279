"""Gradients averaged over all ranks at first, over few or none of them later.

Source: Lin et al., "Don't Use Large Mini-Batches, Use Local SGD", ICLR 2020.
"""

from ...distributed_c10d import new_subgroups
from .debugging_hooks import noop_hook
from .default_hooks import allreduce_hook

__all__ = ["PostLocalSGDState", "post_localSGD_hook"]


class PostLocalSGDState:
    """What `post_localSGD_hook` goes by.

    Args:
        process_group: whose ranks share gradients at first; None: all.
        subgroup: whose ranks share them later; None: those of this host.
        start_localSGD_iter (int): after how many backward passes.
        post_local_gradient_allreduce (bool): whether gradients are shared in the subgroup at all.
    """

    __slots__ = ["process_group", "subgroup", "start_localSGD_iter", "post_local_gradient_allreduce", "iter"]

    def __init__(self, process_group, subgroup, start_localSGD_iter, post_local_gradient_allreduce=True):
        self.process_group, self.subgroup = process_group, subgroup
        self.start_localSGD_iter = start_localSGD_iter
        self.post_local_gradient_allreduce = post_local_gradient_allreduce
        self.iter = 0

    def maybe_increase_iter(self, bucket):
        """Counts a backward pass when its last bucket comes."""
        self.iter += bucket.is_last()


def post_localSGD_hook(state, bucket):
    """Averages a bucket as the state says; `algorithms.model_averaging` averages parameters now and then."""
    if state.iter < state.start_localSGD_iter:
        state.maybe_increase_iter(bucket)
        return allreduce_hook(state.process_group, bucket)
    if not state.post_local_gradient_allreduce:
        return noop_hook(None, bucket)
    if state.subgroup is None:
        state.subgroup, _ = new_subgroups()
    return allreduce_hook(state.subgroup, bucket)
