"""Copies between devices as functions with gradients, which packages that split batches themselves call."""

import rushlight as torch
from rushlight.autograd import Function

from .scatter_gather import _device


class Broadcast(Function):
    """apply(devices, *tensors): the tensors on the first device, then on the second, and so on."""

    @staticmethod
    def forward(ctx, target_gpus, *inputs):
        ctx.count = len(inputs)
        ctx.input_device = inputs[0].device if inputs else None
        ctx.mark_non_differentiable(*(t for t in inputs if not t.is_floating_point() and not t.is_complex()))
        return tuple(t.to(_device(d), copy=True) for d in target_gpus for t in inputs)

    @staticmethod
    def backward(ctx, *grads):
        sums = []
        for i in range(ctx.count):
            parts = [g.to(ctx.input_device) for g in grads[i :: ctx.count] if g is not None]
            sums.append(sum(parts[1:], parts[0]) if parts else None)
        return None, *sums


class ReduceAddCoalesced(Function):
    """apply(destination, count, *grads): the sums of each of `count` tensors over the devices."""

    @staticmethod
    def forward(ctx, destination, num_inputs, *grads):
        ctx.devices = [g.device for g in grads[::num_inputs]]
        target = _device(destination)
        return tuple(
            sum((g.to(target) for g in grads[i + num_inputs :: num_inputs]), grads[i].to(target, copy=True))
            for i in range(num_inputs)
        )

    @staticmethod
    def backward(ctx, *sums):
        return None, None, *(s.to(d) for d in ctx.devices for s in sums)


class Gather(Function):
    """apply(target, dim, *pieces): the pieces of several devices as one tensor on one of them, or "cpu"."""

    @staticmethod
    def forward(ctx, target_device, dim, *inputs):
        ctx.dim, ctx.places = dim, [t.device for t in inputs]
        pieces = [t.reshape(1) if t.dim() == 0 else t for t in inputs]
        ctx.scalars, ctx.sizes = inputs[0].dim() == 0, [t.size(dim) for t in pieces]
        target = _device(target_device)
        return torch.cat([t.to(target) for t in pieces], dim)

    @staticmethod
    def backward(ctx, grad):
        parts = [g.to(d) for g, d in zip(grad.split(ctx.sizes, ctx.dim), ctx.places)]
        return None, None, *(p[0] if ctx.scalars else p for p in parts)


class Scatter(Function):
    """apply(devices, sizes or None, dim, tensor): the tensor in pieces, one on each device."""

    @staticmethod
    def forward(ctx, target_gpus, chunk_sizes, dim, input):
        ctx.dim, ctx.place = dim, input.device
        pieces = (
            input.chunk(len(target_gpus), dim) if chunk_sizes is None else input.split(list(chunk_sizes), dim)
        )
        return tuple(p.to(_device(d), copy=True) for p, d in zip(pieces, target_gpus))

    @staticmethod
    def backward(ctx, *grads):
        return None, None, None, torch.cat([g.to(ctx.place) for g in grads], ctx.dim)


def _get_stream(device):
    """A stream of a device for copies in the background; None on the CPU."""
    return None if torch.device(device).type == "cpu" else torch.cuda.Stream(device)
