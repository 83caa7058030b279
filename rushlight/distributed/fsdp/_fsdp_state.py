"""When parameters are gathered and given back: the hooks of `fully_shard`.

Forward: gathered before a module runs, given back after it (unless told otherwise). Backward: gathered when
    the
gradient of the module's output is there, reduced and given back when that of its input is. What follows next
in
the backward pass is gathered ahead of time. The end of a backward pass cleans up.
"""

from enum import Enum, auto
from typing import Any

import rushlight as torch
from rushlight._C import _engine_queue_callback
from rushlight.utils._pytree import tree_flatten, tree_map, tree_unflatten

__all__ = ["FSDPState", "TrainingState"]


class TrainingState(Enum):
    """What a module is doing."""

    IDLE = auto()
    FORWARD = auto()
    PRE_BACKWARD = auto()
    POST_BACKWARD = auto()


class _Shared:
    """What all states under one root have in common."""

    def __init__(self):
        self.states, self.order, self.callback_queued = [], [], False
        self.is_last_backward = True


class FSDPState:
    """The state of a module given to `fully_shard`, kept as `module._fsdp_state`."""

    def __init__(self, modules, group, policy, reshards):
        self.modules, self.group, self.policy = modules, group, policy
        self.auto_reshard = reshards is None
        self.reshards_after_forward = reshards if reshards is not None else True
        self.state = TrainingState.IDLE
        self.shared: Any = None
        self.is_root = False
        self.forward_prefetch, self.backward_prefetch = [], []
        self.unshards_in_backward = self.prefetches = True
        self._entered = 0

    # --- who is whose root

    def lazy_init(self):
        """The first module that runs is the root of those within it."""
        if self.shared is not None:
            return
        self.is_root, self.shared = True, _Shared()
        for root in self.modules:
            for module in root.modules():
                state = getattr(module, "_fsdp_state", None)
                if state is None or state in self.shared.states:
                    continue
                if state is not self and state.is_root:
                    raise RuntimeError(
                        "FSDP state has already been lazily initialized for a submodule: FSDP requires "
                        "running "
                        "forward through the root module first"
                    )
                state.shared = self.shared
                self.shared.states.append(state)
        if self.auto_reshard:
            self.reshards_after_forward = False

    # --- forward

    def pre_forward(self, args, kwargs):
        if self.state is TrainingState.PRE_BACKWARD:
            return args, kwargs  # activations are computed again; parameters are here
        self.lazy_init()
        self._entered += 1
        if self._entered > 1:
            return args, kwargs
        self.state = TrainingState.FORWARD
        if self.is_root:
            self.shared.order.clear()
        dtype = self.policy.param_dtype
        if dtype is not None and self.policy.cast_forward_inputs:
            args, kwargs = _cast(args, dtype), _cast(kwargs, dtype)
        if self.group is not None:
            keeps = torch.is_grad_enabled() and self.reshards_after_forward
            self.group.forget_kept()
            self.group.start_unshard(self.group.async_unshard)
            self.group.wait_for_unshard(keeps)
            self.group.show_views()
            for other in self.forward_prefetch:
                if other.group is not None:
                    other.group.forget_kept()
                    other.group.start_unshard(True)
            args, kwargs = self._watch_inputs(args, kwargs)
        return args, kwargs

    def post_forward(self, output):
        if self.state is TrainingState.PRE_BACKWARD:
            return output
        self._entered -= 1
        if self._entered > 0:
            return output
        if self.group is not None and self.reshards_after_forward:
            self.group.reshard()
        self.shared.order.append(self)
        self.state = TrainingState.IDLE
        self._watch_outputs(output)
        if self.policy.output_dtype is not None:
            output = _cast(output, self.policy.output_dtype)
        return output

    def _watch_inputs(self, args, kwargs):
        """Have post_backward called when the gradients of the inputs are there."""
        if not torch.is_grad_enabled():
            return args, kwargs
        leaves, shape = tree_flatten((args, kwargs))
        at = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
        if not at:
            return args, kwargs
        for i, tensor in zip(at, _AtInputs.apply(self, *[leaves[i] for i in at])):
            leaves[i] = tensor
        return tree_unflatten(leaves, shape)

    def _watch_outputs(self, output):
        if not torch.is_grad_enabled():
            return
        for leaf in tree_flatten(output)[0]:
            if isinstance(leaf, torch.Tensor) and leaf.requires_grad:
                leaf.register_hook(self._pre_backward)

    # --- backward

    def _pre_backward(self, gradient):
        if not self.shared.callback_queued:
            self.shared.callback_queued = True
            _engine_queue_callback(self._end_of_backward)
        if self.state is not TrainingState.PRE_BACKWARD:
            self.state = TrainingState.PRE_BACKWARD
            if self.group is not None and self.unshards_in_backward:
                self.group.unshard()
                self.group.show_views()
                for other in self.backward_prefetch or self._before():
                    if other.group is not None and other.unshards_in_backward:
                        other.group.start_unshard(True)
        return gradient

    def _before(self):
        """The module that ran before this one, whose turn comes next."""
        order = self.shared.order
        if self not in order or not self.prefetches:
            return []
        at = order.index(self)
        return [order[at - 1]] if at and order[at - 1].state is TrainingState.IDLE else []

    def post_backward(self):
        if self.state is TrainingState.POST_BACKWARD:
            return
        self.state = TrainingState.POST_BACKWARD
        if self.group is None:
            return
        for other in self.shared.states:
            if other.group is not None:
                other.group.finish_reduce()  # one at a time is under way
        self.group.post_backward()

    def _end_of_backward(self):
        for state in self.shared.states:
            group = state.group
            if group is not None:
                late = group.reduces and group.has_gradients()
                if state.state is TrainingState.PRE_BACKWARD or late:
                    state.post_backward()
                    if late and group.has_gradients():
                        group.post_backward()
                group.finish_reduce()
                if group.reshards_after_backward:
                    group.reshard()
            state.state = TrainingState.IDLE
        if self.shared.is_last_backward:
            self.shared.order.clear()
        self.shared.callback_queued = False


def _cast(value, dtype):
    def one(leaf):
        floating = isinstance(leaf, torch.Tensor) and leaf.is_floating_point() and leaf.dtype != dtype
        return leaf.to(dtype) if floating else leaf

    return tree_map(one, value)


class _AtInputs(torch.autograd.Function):
    """Passes tensors on, and tells when their gradients are there."""

    @staticmethod
    def forward(ctx, state, *tensors):
        ctx.state = state
        return tuple(t.view_as(t) for t in tensors)

    @staticmethod
    def backward(ctx, *gradients):
        ctx.state.post_backward()
        return (None, *gradients)
