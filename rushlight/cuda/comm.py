"""Copies between several CUDA devices: broadcast, scatter, gather."""

import rushlight
from rushlight.cuda._devices import _index, device_count

__all__ = ["broadcast", "broadcast_coalesced", "gather", "reduce_add", "reduce_add_coalesced", "scatter"]


def _targets(devices):
    return [rushlight.device("cuda", _index(d, True)) for d in devices]


def broadcast(tensor, devices=None, *, out=None):
    """A tensor on each of the devices; `out`: tensors to write to instead."""
    if (devices is None) == (out is None):
        raise RuntimeError(
            f"Exactly one of 'devices' and 'out' must be specified, but got {devices=} and {out=}"
        )
    if out is not None:
        for target in out:
            target.copy_(tensor, non_blocking=True)
        return tuple(out)
    return tuple(tensor.to(d, non_blocking=True) for d in _targets(devices))


def broadcast_coalesced(tensors, devices, buffer_size=10485760):
    """A list of tensors on each of the devices."""
    return [[t.to(d, non_blocking=True) for t in tensors] for d in _targets(devices)]


def reduce_add(inputs, destination=None):
    """The sum of tensors of several devices, on one of them."""
    inputs = list(inputs)
    if not inputs:
        raise RuntimeError("reduce_add expects a non-empty list of tensors")
    target = rushlight.device("cuda", _index(destination, True))
    shape = inputs[0].size()
    for i, t in enumerate(inputs):
        if t.device.type == "cpu":
            raise RuntimeError("reduce_add expects all inputs to be on GPUs")
        if t.size() != shape:
            got, expected = "x".join(map(str, t.size())), "x".join(map(str, shape))
            raise ValueError(f"input {i} has invalid size: got {got}, but expected {expected}")
    total = inputs[0].to(target, copy=True)
    for t in inputs[1:]:
        total += t.to(target, non_blocking=True)
    return total


def reduce_add_coalesced(inputs, destination=None, buffer_size=10485760):
    """The sums of lists of tensors of several devices, on one of them."""
    return tuple(reduce_add(each, destination) for each in zip(*inputs))


def scatter(tensor, devices=None, chunk_sizes=None, dim=0, streams=None, *, out=None):
    """A tensor in pieces, one on each device."""
    if out is not None:
        sizes = [t.size(dim) for t in out]
        for target, piece in zip(out, tensor.split(sizes, dim)):
            target.copy_(piece, non_blocking=True)
        return tuple(out)
    targets = _targets(range(device_count()) if devices is None else devices)
    pieces = tensor.chunk(len(targets), dim) if chunk_sizes is None else tensor.split(list(chunk_sizes), dim)
    return tuple(p.to(d, non_blocking=True) for p, d in zip(pieces, targets))


def gather(tensors, dim=0, destination=None, *, out=None):
    """Pieces of several devices as one tensor on one of them."""
    if out is not None:
        return rushlight.cat([t.to(out.device, non_blocking=True) for t in tensors], dim, out=out)
    if destination == -1 or str(destination) == "cpu":
        target = rushlight.device("cpu")
    else:
        target = rushlight.device("cuda", _index(destination, True))
    return rushlight.cat([t.to(target, non_blocking=True) for t in tensors], dim)
