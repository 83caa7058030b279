"""Where fake tensors stand in autograd's graph: leaves, or behind some computation, as the real ones do."""

import rushlight as torch
from rushlight import _C


class _Computed(torch.autograd.Function):
    """Gives a fake tensor the place in autograd's graph that its real one has: behind some computation."""

    @staticmethod
    def forward(ctx, fake):
        return fake.fake_mode.from_meta(_C._as_meta(fake), fake.device)

    @staticmethod
    def backward(ctx, gradient):
        return gradient


def with_gradient(fake, is_leaf):
    """The fake tensor, or one in its place, that requires a gradient: a leaf, or none."""
    fake.requires_grad_()
    if is_leaf:
        return fake
    with torch.enable_grad():
        return _Computed.apply(fake)


def begins_history(node):
    """Whether a node of autograd is where the history of a fake tensor ends that stands for a real one."""
    return isinstance(node, _Computed._backward_cls)
